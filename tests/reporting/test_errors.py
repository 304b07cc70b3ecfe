import json

import pytest

from dspy_mama.core import DOMAINS, DeclarationError
from dspy_mama.reporting.error_tables import error_tables
from dspy_mama.reporting.errors import analyse_errors, error_cases

R, S, U = True, False, None


def run(make_record, rows, **change):
    """Records from (id, gold medical, MA1, MA2, MA3) with sound ethical and legal labels."""
    out = []
    for number, (name, gold, *said) in enumerate(rows):
        phases = dict(zip(("initial", "verification", "consensus"), ((label, S, S) for label in said), strict=True))
        record = make_record(number, (gold, S, S), phases)
        out.append({**record, "id": name, **change})
    return out


@pytest.fixture
def mixed(make_record):
    return run(make_record, [
        ("kept right", R, R, R, R),
        ("repaired by MA2", R, S, R, R),
        ("repaired by MA3", S, R, R, S),
        ("broken by MA2", S, S, R, R),
        ("broken by MA3", R, R, R, S),
        ("there and back", R, S, R, S),
        ("always wrong", S, R, R, R),
        ("unscored", R, R, R, U),
    ])  # fmt: skip


def test_errors_are_named_by_phase_domain_and_kind(mixed):
    medical = {phase: own["medical"] for phase, own in analyse_errors({"a": mixed})["runs"]["a"]["phases"].items()}
    assert medical["initial"]["fn"] == ["repaired by MA2", "there and back"]
    assert medical["initial"]["fp"] == ["repaired by MA3", "always wrong"]
    assert medical["consensus"]["fn"] == ["broken by MA3", "there and back"]
    assert medical["consensus"]["fp"] == ["broken by MA2", "always wrong"]
    assert medical["consensus"]["unscored"] == ["unscored"]
    assert (medical["initial"]["n"], medical["consensus"]["n"]) == (8, 7)
    assert medical["final"] == medical["consensus"]


def test_what_a_phase_repaired_and_newly_broke(mixed):
    steps = analyse_errors({"a": mixed})["runs"]["a"]["steps"]
    second = steps["initial->verification"]["medical"]
    assert second["repaired"] == ["repaired by MA2", "there and back"]
    assert second["broken"] == ["broken by MA2"]
    third = steps["verification->consensus"]["medical"]
    assert third["repaired"] == ["repaired by MA3"]
    assert third["broken"] == ["broken by MA3", "there and back"]
    assert third["still_wrong"] == ["broken by MA2", "always wrong"]
    assert (third["n"], third["still_right"]) == (7, 2)
    whole = steps["initial->consensus"]["medical"]
    assert "there and back" in whole["still_wrong"]


def test_paths_show_how_errors_travel_through_the_phases(mixed):
    paths = analyse_errors({"a": mixed})["runs"]["a"]["paths"]["medical"]
    assert paths["wrong > right > wrong"] == {"n": 1, "ids": ["there and back"]}
    assert paths["right > wrong > wrong"]["ids"] == ["broken by MA2"]
    assert paths["right > right > unscored"]["ids"] == ["unscored"]
    assert sum(path["n"] for path in paths.values()) == 8


def test_every_error_of_a_real_sized_run_is_counted_as_the_scores_count_it(records):
    from dspy_mama.reporting import score_phases

    found = analyse_errors({"a": records})["runs"]["a"]["phases"]
    scored = score_phases(records, resamples=10)["phases"]
    for phase, own in scored.items():
        for domain in DOMAINS:
            counts = [len(found[phase][domain][name]) for name in ("fp", "fn")]
            assert counts == [own["domains"][domain][name] for name in ("fp", "fn")]
            assert found[phase][domain]["n"] == own["domains"][domain]["n"]


def test_errors_in_common_are_those_of_all_runs_on_the_pairs_that_all_scored(make_record):
    runs = {
        "a": run(make_record, [("p", R, S, S, S), ("q", S, R, R, R), ("r", S, R, R, R), ("only a", S, R, R, R)]),
        "b": run(make_record, [("r", S, S, S, S), ("q", S, R, R, R), ("p", R, S, S, S)]),
        "c": run(make_record, [("p", R, S, S, U), ("q", S, R, R, R), ("r", S, R, R, R)]),
    }
    common = analyse_errors(runs)["common"]["final"]["medical"]
    assert common == {"n": 2, "fp": ["q"], "fn": []}
    assert analyse_errors({"a": runs["a"]})["common"] is None


def test_errors_are_grouped_by_specialty_language_and_length(make_record):
    rows = [(f"p{number}", S, S, S, R if number >= 6 else S) for number in range(8)]
    records = run(make_record, rows)
    for number, record in enumerate(records):
        record["answer"] = "x" * (number + 1)
        record["language"] = "ja" if number % 2 else "en"
        record["routing"] = {"specialty": "Neurology" if number < 4 else "Surgery"}
    groups = analyse_errors({"a": records})["runs"]["a"]["groups"]
    assert groups["specialty"]["Surgery"]["medical"] == {"n": 4, "fp": 2, "fn": 0, "error_rate": 0.5}
    assert groups["specialty"]["Neurology"]["medical"]["error_rate"] == 0
    assert {name: own["medical"]["fp"] for name, own in groups["language"].items()} == {"en": 1, "ja": 1}
    # Quarters are within a language: of each language's four answers the longest is wrong.
    assert {name: own["medical"]["fp"] for name, own in groups["answer_length"].items()} == {
        "1 (shortest quarter)": 0, "2": 0, "3": 0, "4 (longest quarter)": 2,
    }  # fmt: skip


def test_what_is_not_known_is_a_group_of_its_own(make_record):
    (record,) = run(make_record, [("p", S, R, R, R)])
    record["routing"] = record["language"] = None
    del record["answer"], record["question"]
    groups = analyse_errors({"a": [record]})["runs"]["a"]["groups"]
    assert [list(group) for group in groups.values()] == [["unknown"]] * 3


def test_without_gold_there_is_no_analysis(make_record):
    records = run(make_record, [("p", None, R, R, R)])
    for record in records:
        record["gold"] = dict.fromkeys(DOMAINS)
    with pytest.raises(DeclarationError, match="gold"):
        analyse_errors({"a": records})


def test_contradicting_gold_is_refused(make_record):
    runs = {"a": run(make_record, [("p", R, S, S, S)]), "b": run(make_record, [("p", S, R, R, R)])}
    with pytest.raises(DeclarationError, match=r"medical gold label of pair 'p' differs between a and b"):
        analyse_errors(runs)
    with pytest.raises(DeclarationError, match="differs"):
        error_cases(runs)


def test_the_analysis_is_plain_json_and_fills_its_tables(records):
    analysis = analyse_errors({"a": records, "b": records})
    json.dumps(analysis, allow_nan=False)
    titles = [table.title for table in error_tables(analysis)]
    assert titles[:3] == [
        "Errors by phase and domain", "What each phase repaired and newly broke", "Errors common to all 2 runs",
    ]  # fmt: skip
    assert all(len(row) == len(table.header) for table in error_tables(analysis) for row in table.rows)


def test_a_case_is_one_error_whatever_the_number_of_runs_and_repeats(make_record):
    first = run(make_record, [("p", R, S, S, S), ("q", S, R, R, R)])
    again = [{**record, "repeat": 1, "key": f"{record['key']}x"} for record in first]
    second = run(make_record, [("p", R, S, S, S), ("q", S, R, R, S)])
    cases = error_cases({"a": [*first, *again], "b": second})
    assert [(case.record["id"], case.kind, case.runs, case.common) for case in cases] == [
        ("p", "false_negative", ("a", "b"), True),
        ("q", "false_positive", ("a",), False),
    ]
    assert [case.record["id"] for case in error_cases({"a": first, "b": second}, common=True)] == ["p"]
    assert error_cases({"a": first}, domains=["legal"]) == ()
    assert {case.item for case in error_cases({"b": second})} < {case.item for case in cases}


def test_common_cases_need_two_runs(mixed):
    with pytest.raises(DeclarationError, match="two runs"):
        error_cases({"a": mixed}, common=True)
