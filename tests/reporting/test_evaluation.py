import json

import numpy as np
import pytest

from dspy_mama.core import DeclarationError
from dspy_mama.reporting import compare, flat_metrics, score, score_phases, summarise
from dspy_mama.scoring import labels_from_arrays, labels_from_records

# (tp, fp, fn, tn) of the paper's RAG system after MA3.
PUBLISHED = [(47, 37, 4, 38), (7, 2, 1, 116), (11, 3, 7, 105)]


def labels_from_counts(tables):
    gold = np.column_stack([np.repeat([1, 0, 1, 0], table) for table in tables])
    said = np.column_stack([np.repeat([1, 1, 0, 0], table) for table in tables])
    return labels_from_arrays(gold, said)


def test_score_prints_the_published_figures_in_the_documented_shape():
    found = score(labels_from_counts(PUBLISHED), seed=3, resamples=500)
    medical = found["domains"]["medical"]
    assert {k: medical[k] for k in ("n", "tp", "fp", "fn", "tn")} == {"n": 126, "tp": 47, "fp": 37, "fn": 4, "tn": 38}
    assert [round(medical[k], 3) for k in ("macro_f1", "precision", "recall", "accuracy")] == [
        0.673,
        0.732,
        0.714,
        0.675,
    ]
    assert round(found["average_macro_f1"], 3) == 0.800
    assert set(found) >= {"n", "domains", "average_macro_f1", "joint_accuracy", "unscored", "seed", "resamples"}
    assert set(found["joint_accuracy"]) == {"correct", "n", "value", "ci95"}
    assert (found["seed"], found["resamples"]) == (3, 500)
    low, high = found["average_macro_f1_ci95"]
    # The paper prints .733 to .852 for its own pairs; pairs are matched otherwise here, so the width is what compares.
    assert (low, high) == pytest.approx((0.733, 0.852), abs=0.02)
    json.dumps(found, allow_nan=False)


def test_intervals_do_not_depend_on_which_pair_finished_first(records):
    shuffled = list(records)
    np.random.default_rng(5).shuffle(shuffled)
    first, second = (score_phases(rows, seed=2, resamples=100) for rows in (records, shuffled))
    for phase, own in first["phases"].items():
        assert second["phases"][phase]["average_macro_f1_ci95"] == own["average_macro_f1_ci95"]
        for domain, values in own["domains"].items():
            for metric, limits in values["ci95"].items():
                assert second["phases"][phase]["domains"][domain]["ci95"][metric] == pytest.approx(limits, abs=1e-9)
    assert second["deltas"] == first["deltas"]


def test_the_same_seed_gives_the_same_numbers_and_another_one_others(records):
    assert score_phases(records, seed=1) == score_phases(records, seed=1)
    assert score_phases(records, seed=1)["deltas"] != score_phases(records, seed=2)["deltas"]


def test_phases_that_get_better_are_found_higher_and_equal_ones_are_not(records):
    deltas = score_phases(records)["deltas"]
    assert list(deltas) == ["initial->verification", "verification->consensus", "initial->consensus"]
    gain = deltas["initial->consensus"]
    assert gain["average_macro_f1"]["finding"] == "higher"
    assert gain["domains"]["medical"]["n"] == 124
    for record in records:
        record["phases"]["verification"] = record["phases"]["initial"]
    same = score_phases(records)["deltas"]["initial->verification"]
    assert same["average_macro_f1"]["ci95"] == [0.0, 0.0]
    assert same["joint_accuracy"]["finding"] == "not distinguishable"


def test_pooled_gain_is_the_difference_of_the_averages(records):
    found = score_phases(records)
    initial, verification = (found["phases"][p]["average_macro_f1"] for p in ("initial", "verification"))
    assert found["deltas"]["initial->verification"]["average_macro_f1"]["value"] == pytest.approx(
        verification - initial
    )


def test_compare_mirrors_when_the_systems_are_swapped(records):
    first, second = labels_from_records(records, "initial"), labels_from_records(records, "consensus")
    forth = compare(first, second, ("a", "b"))["deltas"]["a->b"]["average_macro_f1"]
    back = compare(second, first, ("b", "a"))["deltas"]["b->a"]["average_macro_f1"]
    assert back["value"] == pytest.approx(-forth["value"])
    assert back["ci95"] == pytest.approx([-forth["ci95"][1], -forth["ci95"][0]], abs=1e-12)
    assert (forth["finding"], back["finding"]) == ("higher", "lower")


def test_compare_uses_the_shared_pairs_only(records):
    first = labels_from_records(records[:100], "initial")
    second = labels_from_records(records[50:][::-1], "initial")
    found = compare(first, second)
    assert found["systems"]["first"]["n"] == 50
    delta = found["deltas"]["first->second"]["joint_accuracy"]
    assert (delta["value"], delta["ci95"]) == (0.0, [0.0, 0.0])


def test_degenerate_resamples_are_counted(records):
    rare = [dict(record, gold={"medical": number == 0}) for number, record in enumerate(records[:20])]
    found = score_phases(rare, resamples=1000)["phases"]["initial"]["domains"]["medical"]
    assert 250 < found["degenerate_resamples"] < 480


def test_repeats_widen_the_interval_instead_of_counting_as_new_pairs(records):
    once = score_phases(records)["phases"]["initial"]
    many = [dict(record, repeat=k) for record in records for k in range(4)]
    repeated = score_phases(many)["phases"]["initial"]
    widths = [np.ptp(found["average_macro_f1_ci95"]) for found in (once, repeated)]
    assert repeated["average_macro_f1"] == pytest.approx(once["average_macro_f1"])
    assert widths[1] == pytest.approx(widths[0], rel=0.15)


def test_a_domain_without_gold_has_no_numbers_and_a_delta_that_says_so(records):
    for record in records:
        record["gold"]["legal"] = None
    found = score_phases(records)
    assert found["phases"]["initial"]["domains"]["legal"]["ci95"]["macro_f1"] is None
    assert found["phases"]["initial"]["average_domains"] == ["medical", "ethical"]
    assert found["deltas"]["initial->verification"]["domains"]["legal"]["macro_f1"]["finding"] == "not scored"
    assert found["deltas"]["initial->verification"]["average_macro_f1"]["finding"] == "higher"


def test_probabilities_get_intervals(records):
    medical = score_phases(records)["phases"]["initial"]["domains"]["medical"]
    assert medical["ci95"]["auc"][0] < medical["auc"] < medical["ci95"]["auc"][1]
    assert set(medical["ci95"]) == {
        "macro_f1",
        "accuracy",
        "precision",
        "recall",
        "auc",
        "average_precision",
        "brier",
        "ece",
    }


def test_flat_metrics_are_finite_numbers_with_bounds(records):
    for record in records:
        record["gold"]["legal"] = None
    flat = flat_metrics(summarise(records))
    assert flat["consensus/medical/macro_f1_low"] < flat["consensus/medical/macro_f1"]
    assert "consensus/legal/macro_f1" not in flat
    assert flat["consensus/legal/n"] == 0
    assert flat["usage/initial/prompt_tokens"] == 126 * 900
    assert "usage/initial/cost" not in flat
    assert all(isinstance(value, float) and np.isfinite(value) for value in flat.values())


def test_gold_that_contradicts_is_refused():
    with pytest.raises(DeclarationError, match="differ"):
        compare(labels_from_arrays([[1, 0, 0]], [[1, 0, 0]]), labels_from_arrays([[0, 0, 0]], [[1, 0, 0]]))


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_questions_asked_twice_are_one_unit_where_that_is_asked_for(records, method):
    for number, record in enumerate(records):
        record["question"] = f"question {number // 2}"
    apart = score_phases(records, method=method)["final"]
    together = score_phases(records, method=method, cluster_by_question=True)["final"]
    assert (apart["units"], together["units"]) == (126, 63)
    assert apart["average_macro_f1"] == together["average_macro_f1"]
    assert apart["average_macro_f1_ci95"] != together["average_macro_f1_ci95"]
    assert apart["method"] == method
