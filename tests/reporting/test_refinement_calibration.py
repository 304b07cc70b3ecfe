import json

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.safety_ratings import SafetyRating
from dspy_mama.reporting.refinement_calibration import calibrate, calibration_tables
from reporting.refinement_records import record, version

LIMITS = {"ama": 2, "sra": 2}


def rated(scores, shift=0):
    """Records with one version each, and one person who sees so many violations more."""
    rows = [record(n, [(1, 1)]) | {"versions": [version(1, "t", *pair)]} for n, pair in enumerate(scores)]
    for row in rows:
        row["final"] = {"version": 1}
    people = [
        SafetyRating(f"q{n}", None, "r1", {"ama": ama + shift, "sra": sra}) for n, (ama, sra) in enumerate(scores)
    ]
    return rows, people


SCORES = [(n % 7, n % 5 + 1) for n in range(30)]


def test_an_evaluator_that_says_what_people_say_agrees():
    found = calibrate(*rated(SCORES), LIMITS, resamples=100)
    json.dumps(found, allow_nan=False)
    own = found["scales"]["ama"]["evaluators"]["ethics"]
    assert (own["weighted_kappa"]["value"], own["icc"]["value"], own["bias"]["value"]) == (1, 1, 0)
    assert own["thresholds"]["2.0"]["let_through"]["count"] == 0
    assert set(found["scales"]["sra"]["evaluators"]) == {"safety", "merged"}


def test_an_evaluator_that_is_too_lenient_is_found_out():
    found = calibrate(*rated(SCORES, shift=2), LIMITS, resamples=100)
    own = found["scales"]["ama"]["evaluators"]["merged"]
    assert own["bias"]["value"] == -2
    assert own["icc"]["value"] < 0.8
    assert own["icc"]["ci95"][0] < own["icc"]["value"] < own["icc"]["ci95"][1]
    # People see 3 or more where it sees 1 or more: of 25 such texts it lets those with 1 and 2 through.
    assert own["thresholds"]["2.0"]["let_through"] | {"ci95": None} == {
        "value": 9 / 25,
        "ci95": None,
        "count": 9,
        "n": 25,
    }
    assert own["thresholds"]["0.0"]["let_through"]["count"] == 0
    tables = calibration_tables(found)
    assert [row[1] for row in tables[1].rows if "(this run)" in row[1]] == ["at most 2 (this run)"] * 2
    assert all(len(row) == len(table.header) for table in tables for row in table.rows)


def test_several_raters_are_held_against_one_another():
    rows, people = rated(SCORES)
    people += [SafetyRating(one.id, 1, "r2", {"ama": min(9, one.scores["ama"] + 1)}) for one in people]
    own = calibrate(rows, people, LIMITS, resamples=50)["scales"]["ama"]
    assert own["people"]["raters"] == ["r1", "r2"]
    assert 0.5 < own["people"]["krippendorff_alpha"] < 1
    assert own["evaluators"]["merged"]["bias"]["value"] == -0.5


def test_an_unreadable_score_is_left_out_and_not_taken_as_good():
    rows, people = rated(SCORES)
    rows[0]["versions"][0]["assessments"][0]["score"] = None
    rows[0]["versions"][0]["consensus"]["ama"] = None
    assert calibrate(rows, people, LIMITS, resamples=50)["scales"]["ama"]["n"] == 29


@pytest.mark.parametrize(
    ("rating", "named"),
    [
        (SafetyRating("zz", None, "", {"ama": 1}), "no record of the run has the id 'zz'"),
        (SafetyRating("q1", 7, "", {"ama": 1}), "'q1' has no version 7; it has \\[1\\]"),
    ],
)
def test_a_rating_of_what_is_not_there_is_refused(rating, named):
    rows, _ = rated(SCORES)
    with pytest.raises(DeclarationError, match=named):
        calibrate(rows, [rating], LIMITS)


def test_ratings_of_unassessed_text_calibrate_nothing():
    rows = [record(1, [(1, 1)]) | {"versions": [version(1, "t", 1, 1, assessed=False)], "final": {"version": 1}}]
    with pytest.raises(DeclarationError, match="no rated version was assessed"):
        calibrate(rows, [SafetyRating("q1", 1, "", {"ama": 1})], LIMITS)


def test_two_ratings_of_one_text_by_one_person_do_not_replace_one_another():
    rows, people = rated(SCORES)
    with pytest.raises(DeclarationError, match="r1 rated version 1 of 'q0' twice"):
        calibrate(rows, [*people, SafetyRating("q0", 1, "r1", {"ama": 9})], LIMITS, resamples=50)
