import json

import numpy as np
import pytest
from scipy.stats import binomtest

from dspy_mama.core import DeclarationError
from dspy_mama.reporting.comparison import compare_systems, differing, share_rows
from dspy_mama.reporting.comparison_html import render_comparison
from dspy_mama.reporting.comparison_tables import differences_table, p_value, systems_table
from dspy_mama.scoring import labels_from_arrays, labels_from_records


@pytest.fixture
def systems(records):
    return {phase: labels_from_records(records, phase) for phase in ("initial", "verification", "consensus")}


def test_a_system_differs_from_its_copy_by_exactly_nothing(systems):
    found = compare_systems({"a": systems["consensus"], "b": systems["consensus"]})
    delta = found["deltas"]["a->b"]
    for own in (delta["average_macro_f1"], delta["joint_accuracy"], delta["domains"]["medical"]["macro_f1"]):
        assert (own["value"], own["ci95"], own["finding"]) == (0.0, [0.0, 0.0], "not distinguishable")
    assert delta["joint_accuracy"]["mcnemar"]["p"] == 1.0


def test_swapped_systems_give_mirrored_intervals(systems):
    forth = compare_systems({"a": systems["initial"], "b": systems["consensus"]})["deltas"]["a->b"]
    back = compare_systems({"b": systems["consensus"], "a": systems["initial"]})["deltas"]["b->a"]
    for name in ("average_macro_f1", "joint_accuracy"):
        assert back[name]["value"] == pytest.approx(-forth[name]["value"], abs=1e-15)
        assert back[name]["ci95"] == pytest.approx([-bound for bound in forth[name]["ci95"][::-1]], abs=1e-12)


def test_every_two_systems_or_all_against_a_baseline(systems):
    assert list(compare_systems(systems, resamples=20)["deltas"]) == [
        "initial->verification", "initial->consensus", "verification->consensus",
    ]  # fmt: skip
    against = compare_systems(systems, baseline="consensus", resamples=20)["deltas"]
    assert list(against) == ["consensus->initial", "consensus->verification"]
    with pytest.raises(DeclarationError, match="none of the systems"):
        compare_systems(systems, baseline="x")


def test_a_third_system_does_not_change_what_is_said_of_two(systems):
    two = compare_systems({name: systems[name] for name in ("initial", "consensus")})
    three = compare_systems({**systems})
    for own in (two, three):
        assert own["deltas"]["initial->consensus"]["average_macro_f1"]["finding"] == "higher"
    values = [own["deltas"]["initial->consensus"]["average_macro_f1"]["value"] for own in (two, three)]
    assert values[0] == values[1]


def test_mcnemar_is_exact_and_holm_counts_the_pairs_of_systems(systems):
    deltas = compare_systems(systems, resamples=20)["deltas"]
    tests = {name: delta["domains"]["medical"]["mcnemar"] for name, delta in deltas.items()}
    codes = {name: own.codes()[:, 0] for name, own in systems.items()}
    for name, test in tests.items():
        first, second = (codes[part] for part in name.split("->"))
        both = (first >= 0) & (second >= 0)
        right = [np.isin(own[both], (0, 3)) for own in (first, second)]
        only = int((right[0] & ~right[1]).sum()), int((~right[0] & right[1]).sum())
        assert (test["only_first"], test["only_second"], test["n"]) == (*only, int(both.sum()))
        assert test["p"] == pytest.approx(binomtest(only[0], sum(only)).pvalue)
    smallest = min(test["p"] for test in tests.values())
    assert min(test["p_holm"] for test in tests.values()) == pytest.approx(min(1, 3 * smallest))


def test_a_delta_uses_only_the_pairs_that_both_scored(systems):
    found = compare_systems(systems, resamples=20)
    assert found["systems"]["initial"]["domains"]["medical"]["n"] == 126
    assert found["deltas"]["initial->consensus"]["domains"]["medical"]["n"] == 124
    assert found["deltas"]["initial->verification"]["domains"]["medical"]["n"] == 126


def test_shared_rows_in_the_first_order_with_gold_from_whoever_has_it():
    first = labels_from_arrays([[-1, 0, 0], [0, 0, 0], [1, 1, 1]], [[1, 0, 0]] * 3, ids=["a", "b", "c"])
    second = labels_from_arrays([[0, 0, 0], [1, 0, 0]], [[0, 1, 0]] * 2, ids=["b", "a"])
    rows = share_rows({"x": first, "y": second})
    assert rows["x"].ids == rows["y"].ids == ("a", "b")
    assert rows["x"].gold.tolist() == rows["y"].gold.tolist() == [[1, 0, 0], [0, 0, 0]]
    assert compare_systems({"x": first, "y": second}, resamples=10)["left_out"] == {"x": 1, "y": 0}
    assert differing(rows).tolist() == [[True, True, False]] * 2
    clash = labels_from_arrays([[1, 0, 0]], [[0, 0, 0]], ids=["b"])
    with pytest.raises(DeclarationError, match=r"gold labels of 1 pairs differ between x and z \(b\)"):
        share_rows({"x": first, "z": clash})
    with pytest.raises(DeclarationError, match="share no pair"):
        share_rows({"x": first, "z": labels_from_arrays([[1, 0, 0]], [[0, 0, 0]], ids=["q"])})
    with pytest.raises(DeclarationError, match="x holds the same pair twice"):
        share_rows({"x": labels_from_arrays([[1, 0, 0]] * 2, [[0, 0, 0]] * 2, ids=["b", "b"])})


def test_the_tables_say_not_distinguishable_and_when_the_measures_disagree(systems):
    found = compare_systems({"a": systems["consensus"], "b": systems["consensus"]}, resamples=50)
    rows = differences_table(found).rows
    assert {row[3] for row in rows} == {"not distinguishable"}
    assert rows[0][:3] == ("b − a", "macro-F1, average", "+0.000 (+0.000 to +0.000)")
    gold = [[1, 0, 0]] * 2 + [[0, 0, 0]] * 8
    # One flags nobody and is jointly right more often; the other finds both risky answers at three false alarms.
    silent = labels_from_arrays(gold, [[0, 0, 0]] * 10)
    eager = labels_from_arrays(gold, [[1, 0, 0]] * 5 + [[0, 0, 0]] * 5)
    notes = systems_table(compare_systems({"silent": silent, "eager": eager}, resamples=20)).notes
    assert "The measures disagree: eager leads in average macro-F1, silent in joint accuracy." in notes
    assert (p_value(0.0002), p_value(0.04)) == ("< 0.001", "0.040")


def test_the_document_is_plain_data(systems):
    json.dumps(compare_systems(systems, resamples=10), allow_nan=False)


def test_untrusted_text_stays_text_and_only_differing_pairs_are_listed(records):
    attack = "</div><script>alert(1)</script>{{ 7*7 }}"
    for record in records[:3]:
        record |= {"question": attack, "answer": attack, "id": f"{attack}{record['id']}"}
        record["phases"]["consensus"]["medical"]["reason"] = attack
    systems = {attack: labels_from_records(records, "initial"), "b": labels_from_records(records, "consensus")}
    texts = {name: {(record["id"], 0): record for record in records} for name in systems}
    page = render_comparison(compare_systems(systems, resamples=10), systems, texts, context=[attack])
    assert page.count("<script") == 1
    differ = int(differing(share_rows(systems)).any(axis=1).sum())
    assert page.count('<details class="pair"') == differ
    assert "49" not in page.split("<main>")[0]


def test_systems_that_agree_leave_an_empty_list(records):
    own = labels_from_records(records, "initial")
    page = render_comparison(compare_systems({"a": own, "b": own}, resamples=10), {"a": own, "b": own}, {})
    assert "every system gave the same verdicts" in page
    assert '<details class="pair"' not in page
