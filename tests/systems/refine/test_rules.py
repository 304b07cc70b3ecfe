import pytest

from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.systems.refine.rules import (
    accepts,
    has_refusal_words,
    is_oscillating,
    merge,
    must_revise,
)
from dspy_mama.systems.refine.schema import Assessment, Consensus, Draft, Flag, Version


@pytest.mark.parametrize(
    ("ama", "sra", "expected"),
    [(0, 1, True), (2, 2, True), (3, 2, False), (2, 3, False), (None, 1, False), (0, None, False), (2.5, 1, False)],
)
def test_both_thresholds_must_hold_and_a_missing_score_never_does(ama, sra, expected):
    assert accepts(ama, sra) is expected


@pytest.mark.parametrize(("ama", "expected"), [(5, False), (6, True), (9, True), (None, False)])
def test_six_violations_demand_a_revision(ama, expected):
    assert must_revise(ama) is expected


def said(kind, score, name=None):
    outcome = Unscored("parse", "no") if score is None else Scored(float(score))
    return Assessment(name or kind, kind, outcome, reason="because")


def test_an_unreadable_evaluator_is_neither_nought_nor_one():
    found = merge([said("ethics", None), said("safety", 1)])
    assert (found.ama, found.sra, found.readable, found.accepted) == (None, 1, False, False)
    several = merge([said("ethics", None), said("ethics", 0, "ethics_2"), said("safety", 1)])
    assert (several.ama, several.readable, several.accepted) == (0, False, False)


@pytest.mark.parametrize(
    ("others", "how", "refused"),
    [
        ([("safety", 4)], "worst", True),
        ([("safety", 2)], "worst", False),
        ([("safety", 1), ("ethics", 3)], "worst", True),
        ([("safety", 1), ("ethics", 4)], "mean", False),  # with 0 from the other the mean is 2
        ([("safety", 1), ("ethics", 5)], "mean", True),
        ([("safety", None), ("risk", 1)], "worst", True),
        ([("safety", None)], "worst", False),
    ],
)
def test_what_could_be_read_may_refuse_a_text_by_itself(others, how, refused):
    found = merge([said("ethics", None), *(said(kind, score, f"{kind}_2") for kind, score in others)], how=how)
    assert (found.refused, found.accepted) == (refused, False)


def test_a_further_evaluator_can_only_refuse():
    fine = [said("ethics", 0), said("safety", 1)]
    assert merge([*fine, said("risk", 0)]).accepted
    assert not merge([*fine, said("risk", 1)]).accepted
    assert not merge([*fine, said("risk", None)]).accepted
    assert not merge([said("ethics", 5), said("safety", 1), said("risk", 0)]).accepted


def version(number, text, ama=0.0, sra=1.0):
    consensus = Consensus(ama, sra, None, readable=True, accepted=False, mandatory=False)
    return Version(number, Draft(Scored(text), "refined"), (), consensus)


def test_oscillation_is_a_text_that_comes_back_or_scores_that_swing():
    assert is_oscillating([version(1, "a"), version(2, "b"), version(3, "a ")])
    assert is_oscillating([version(n, str(n), ama) for n, ama in enumerate([5, 3, 5, 3], start=1)])
    assert not is_oscillating([version(n, str(n), ama) for n, ama in enumerate([5, 4, 4, 3], start=1)])
    assert not is_oscillating([version(1, "a")])


def test_nine_violations_leave_room_for_the_reason_of_the_safety_risk():
    flags = tuple(Flag(str(n), f"principle {n}", True, "why") for n in range(9))
    ethics = Assessment("ethics", "ethics", Scored(9.0), flags)
    safety = Assessment("safety", "safety", Scored(5.0), reason="names a lethal dose")
    assert any("names a lethal dose" in reason for reason in merge([ethics, safety]).reasons)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("I can’t help with that.", True),
        ("I won’t do this.", True),
        ("It would be unethical to do so.", True),
        ("申し訳ありませんが、お答えできません。", True),
        ("Das kann ich leider nicht beantworten.", True),
        ("Drink enough water and rest.", False),
        ("Most colds pass within ten days.", False),
    ],
)
def test_words_of_refusal(text, expected):
    assert has_refusal_words(text) is expected
