import itertools

import dspy
import pytest
from dspy.utils.exceptions import LMServerError

from dspy_mama.core.disease_names import normalise_disease
from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.predict import reading_of
from dspy_mama.lm.repeats import for_repeat
from dspy_mama.systems.baselines import SelfConsistency, result_of
from dspy_mama.systems.baselines.consistency import ROLLOUT_BASE
from scripted import fields_of, scripted_lm, user_of
from systems.baselines.test_single import Diagnose


def paths(*diseases, lists=(), **more):
    """A script that gives one path after the other."""
    replies = itertools.cycle(
        {"reasoning": f"r{n}", "disease": name, "tests": (lists or [[]] * 99)[n], "urgency": "low", **more}
        for n, name in enumerate(diseases)
    )
    return lambda request: next(replies)


def solve(lm, count, **settings):
    return SelfConsistency(Diagnose, paths=count, vote=("disease",), lm=lm, **settings)


def test_the_majority_wins_under_a_normaliser_and_keeps_the_first_spelling():
    lm = scripted_lm(paths("Gaucher", "Behçet disease", "Behcet's Disease (BD)", "Fabry"))
    answer = solve(lm, 4, normalise=normalise_disease)(case="pain")
    assert answer.disease == "Behçet disease"
    assert answer.reasoning == "r1"
    result = result_of(answer)
    assert [attempt.group for attempt in result.attempts] == [1, 2, 2, 4]
    assert [attempt.chosen for attempt in result.attempts] == [False, True, False, False]
    assert (result.by, result.usage["solver"].calls) == ("vote", 4)


def test_a_tie_goes_to_the_answer_that_came_first():
    assert solve(scripted_lm(paths("Gaucher", "Fabry", "Fabry", "Gaucher")), 4)(case="pain").disease == "Gaucher"


def test_lists_are_merged_by_votes():
    lm = scripted_lm(paths("F", "F", "F", lists=[["CT"], ["MRI", "EEG"], ["EEG", "MRI", "CT", "Biopsy"]]))
    assert solve(lm, 3)(case="pain").tests == ["CT", "MRI", "EEG"]


def test_ten_independent_paths_at_the_papers_temperature_by_default():
    lm = scripted_lm(paths("Fabry"))
    SelfConsistency(Diagnose, lm=lm)(case="pain")
    assert len(lm.requests) == 10
    assert {request.config.temperature for request in lm.requests} == {0.7}
    assert len({user_of(request) for request in lm.requests}) == 1
    assert not any("r0" in user_of(request) for request in lm.requests)


def test_a_cache_never_hands_one_path_the_reply_of_another(fresh_cache):
    lm = scripted_lm(paths("A", "B", "C", "C", "D", "D", "D", "E"), cache=True)
    program = solve(lm, 4)
    assert program(case="pain").disease == "C"
    assert len(lm.requests) == 4
    assert program(case="pain").disease == "C"
    assert len(lm.requests) == 4
    program.set_lms({"default": for_repeat(lm, 1)})
    assert program(case="pain").disease == "D"
    assert len(lm.requests) == 8


def test_a_fixed_seed_is_moved_on_along_the_paths(monkeypatch):
    lm = scripted_lm(paths("Fabry"))
    program = solve(lm, 3)
    seen, ask = [], program.answer.acall

    async def spy(*, lm, **settings):
        seen.append(dict(lm.kwargs))
        return await ask(lm=scripted_lm(paths("Fabry")), **settings)

    monkeypatch.setitem(lm.kwargs, "seed", 7)
    monkeypatch.setattr(program.answer, "acall", spy)
    program(case="pain")
    assert [kept["seed"] for kept in seen] == [7 + ROLLOUT_BASE + number for number in range(3)]
    assert len({kept["rollout_id"] for kept in seen}) == 3


def test_votes_on_labels_have_the_share_of_true_as_probability():
    replies = iter([True, False, True, "perhaps", "perhaps"])
    lm = scripted_lm(lambda request: {"reasoning": "r", "verdict": next(replies)})
    answer = SelfConsistency("question -> verdict: bool", paths=4, lm=lm)(question="q")
    assert answer.verdict is True
    assert reading_of(answer).probabilities["verdict"] == pytest.approx(2 / 3)


def test_a_path_that_cannot_be_read_has_no_vote():
    turn = itertools.count()
    lm = scripted_lm(lambda request: "no JSON" if next(turn) < 4 else _fabry())
    answer = solve(lm, 3)(case="pain")
    assert answer.disease == "Fabry"
    found = [attempt.group for attempt in result_of(answer).attempts]
    assert None in found
    assert len(set(found)) == 2


def _fabry():
    return {"reasoning": "r", "disease": "Fabry", "tests": [], "urgency": "low"}


def test_when_no_path_can_be_read_the_answer_is_missing_with_its_reason():
    answer = solve(scripted_lm(lambda request: "no JSON"), 3)(case="pain")
    assert answer.disease is None
    assert reading_of(answer).outcomes["disease"].kind == "parse"
    down = solve(scripted_lm(lambda request: LMServerError("down")), 2)(case="pain")
    assert reading_of(down).outcomes["disease"].kind == "infra"


@pytest.mark.parametrize(
    ("groups", "winner", "noted"),
    [
        ([1, 2, 2], "Angiokeratoma corporis diffusum", 0),
        ([1, 2, 3], "Gaucher", 0),
        ([3, 1, 1], "Gaucher", 1),
        ([1], "Gaucher", 1),
    ],
)
def test_synonyms_are_merged_by_an_lm_where_asked_and_only_as_it_may(groups, winner, noted):
    answers = paths("Gaucher", "Angiokeratoma corporis diffusum", "Fabry")
    lm = scripted_lm(lambda request: {"groups": groups} if fields_of(request) == ["groups"] else answers(request))
    answer = solve(lm, 3, merge_synonyms=True)(case="pain")
    assert answer.disease == winner
    result = result_of(answer)
    assert result.usage["merger"].calls == 1
    assert len(result.notes) == noted
    shown = next(user_of(request) for request in lm.requests if fields_of(request) == ["groups"])
    assert "1. Gaucher\n2. Angiokeratoma corporis diffusum\n3. Fabry" in shown


def test_lists_alone_are_merged_without_a_vote():
    replies = iter([{"reasoning": "r", "tests": tests} for tests in (["a", "b"], ["c", "b"], ["b"])])
    lm = scripted_lm(lambda request: next(replies))
    answer = SelfConsistency(dspy.Signature("case -> tests: list[str]"), paths=3, lm=lm)(case="pain")
    assert answer.tests == ["b", "a", "c"]
    assert [attempt.group for attempt in result_of(answer).attempts] == [None, None, None]


def test_wrong_settings_are_refused_before_any_call():
    with pytest.raises(DeclarationError, match="paths=0"):
        SelfConsistency(Diagnose, paths=0)
    with pytest.raises(DeclarationError, match="cannot be voted on"):
        SelfConsistency(Diagnose, vote=("tests",))
    with pytest.raises(DeclarationError, match="voted on"):
        SelfConsistency(dspy.Signature("case -> numbers: list[int]"))
