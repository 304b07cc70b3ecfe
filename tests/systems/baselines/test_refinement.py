import dspy
import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.systems.baselines import SelfRefine, result_of
from scripted import fields_of, scripted_lm, system_of, user_of
from systems.baselines.test_single import Diagnose


def kind(request):
    if "draft_score" in fields_of(request):
        return "critic"
    return "rewrite" if "your earlier answer" in system_of(request) else "answer"


def refine(scores, **settings):
    """Answers are A, B, C, ...; the critic gives the scores in turn (an unreadable one is asked for twice)."""
    names, marks = iter("ABCDEFGH"), iter(scores)

    def script(request):
        if kind(request) == "critic":
            score = next(marks)
            return {"critique": f"mend for {score}", "draft_score": score}
        return {"disease": next(names), "tests": [], "urgency": "low"}

    lm = scripted_lm(script)
    return SelfRefine(Diagnose, lm=lm, **settings), lm


def test_a_rewrite_that_scores_no_worse_is_kept_and_the_last_kept_is_the_answer():
    program, lm = refine([20, 30, 30, 20, 40])
    answer = program(case="pain")
    assert answer.disease == "E"
    attempts = result_of(answer).attempts
    assert [attempt.score for attempt in attempts] == [20, 30, 30, 20, 40]
    assert [attempt.kept for attempt in attempts] == [True, True, True, False, True]
    assert [attempt.chosen for attempt in attempts] == [False, False, False, False, True]
    assert [kind(request) for request in lm.requests] == ["answer", "critic", *["rewrite", "critic"] * 4]
    assert {request.config.temperature for request in lm.requests} == {0.7}
    assert (result_of(answer).usage["solver"].calls, result_of(answer).usage["critic"].calls) == (5, 5)


def test_a_rewrite_starts_from_what_was_kept_and_its_critique():
    program, lm = refine([30, 20, 40], rounds=2)
    program(case="pain")
    rewrites = [user_of(request) for request in lm.requests if kind(request) == "rewrite"]
    assert all('"disease": "A"' in text and "mend for 30" in text for text in rewrites)


def test_the_best_score_ends_it():
    program, lm = refine([50])
    assert program(case="pain").disease == "A"
    assert len(lm.requests) == 2


def test_a_rewrite_without_a_readable_score_was_not_shown_to_be_no_worse():
    program, _ = refine([30, 35, "many", 20], rounds=2)
    answer = program(case="pain")
    assert answer.disease == "A"
    assert [attempt.score for attempt in result_of(answer).attempts] == [30, None, 20]
    assert "has no score" in result_of(answer).notes[0]


def test_without_a_first_score_the_first_answer_stands():
    program, _ = refine([None, None])
    answer = program(case="pain")
    assert answer.disease == "A"
    assert len(result_of(answer).attempts) == 1
    assert "has no score" in result_of(answer).notes[0]


def test_an_unreadable_answer_is_not_criticised():
    lm = scripted_lm(lambda request: "no JSON")
    answer = SelfRefine(Diagnose, lm=lm)(case="pain")
    assert answer.disease is None
    assert {kind(request) for request in lm.requests} == {"answer"}


def test_the_critic_sees_the_task_and_the_scale_and_its_numbers_are_closed():
    program, lm = refine([50])
    program(case="pain")
    critic = lm.requests[-1]
    assert "Name the disease." in system_of(critic)
    assert "- 30: partly right" in system_of(critic)
    form = critic.config.response_format
    schema = form.get("schema") or form["json_schema"]["schema"]
    assert schema["properties"]["draft_score"] == {"type": "integer", "enum": [50, 40, 30, 20, 0]}


def test_wrong_settings_are_refused():
    with pytest.raises(DeclarationError, match="rounds=0"):
        SelfRefine(Diagnose, rounds=0)
    with pytest.raises(DeclarationError, match="draft"):
        SelfRefine(dspy.Signature("draft -> disease"))
