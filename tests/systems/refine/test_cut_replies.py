"""Replies that are cut at the token limit: judged, told, and never accepted as if they were whole."""

import json

import pytest

from dspy_mama.systems.refine.cut_text import text_of_cut
from scripted import response
from systems.refine.loops import Loop, kind_of

JUDGED = ["ethics", "safety"]


def cut(text):
    return lambda request: response(text, request, finish="length")


def first_cut(times, text='{"reply": "Take care and', then="whole"):
    """The first so many replies are cut, also where they are asked for again."""
    asked = []

    def answer(request):
        asked.append(request)
        return cut(text)(request) if len(asked) <= times else {"reply": then}

    answer.asked = asked
    return answer


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ('{"reply": "Take care and', ("Take care and", True)),
        ('{"reply": "Take care."', ("Take care.", False)),
        ('{"reply": "Take care."   \n\n', ("Take care.", False)),
        ('```json\n{ "reply" : "a\\nb \\u30', ("a\nb", True)),
        ('{"reply": "a\\', ("a", True)),
        ('{"reply": "\\ud83d', ("?", True)),
        ('<think>hm</think>{"reply": "Go', ("Go", True)),
        ("[[ ## reply ## ]]\nGo to a doctor and", ("Go to a doctor and", True)),
        ('<think>{"reply": "Take ten', None),
        ('{"reply": "', None),
        ('{"reply": "He said "no" to', None),
        ('{"reply": "bad \\x escape', None),
        ('{"note": 1, "reply": "x', None),
        ('I quote: {"reply": "x', None),
        ("", None),
    ],
)
def test_the_text_of_a_cut_reply_is_read_as_far_as_it_goes(raw, found):
    assert text_of_cut(raw) == found


def test_a_cut_text_is_judged_and_rewritten_but_not_accepted():
    replies = first_cut(2)
    loop = Loop([0], [1], generate=replies)
    result = loop.run()
    assert loop.order() == ["generate", "generate", *JUDGED, "refine", *JUDGED]  # no planner: one thing to do
    assert [r.config.max_tokens for r in replies.asked] == [200, 400]
    first, second = result.refinement.versions
    assert (first.draft.text, first.draft.incomplete) == ("Take care and", True)
    assert (first.consensus.ama, first.consensus.sra, first.consensus.accepted) == (0, 1, False)
    assert "it broke off" in first.plan.steps[0]
    assert (result.accepted, result.converged, result.iterations) == (True, True, 2)
    assert second.draft.incomplete is False
    assert result.end_states["incomplete"] is False


def test_a_plan_for_other_faults_also_says_that_the_text_broke_off():
    loop = Loop([7, 0], [4, 1], generate=first_cut(2))
    result = loop.run()
    steps = result.refinement.versions[0].plan.steps
    assert "it broke off" in steps[0]
    assert steps[1:] == ("remove the dose", "send to a doctor")
    shown = next(str(r.messages) for r in loop.lm.requests if kind_of(r) == "refine")
    assert "it broke off" in shown


def test_a_text_that_is_never_whole_is_never_accepted():
    always = cut('{"reply": "Take care and')
    result = Loop([0], [1], generate=always, refine=always).run(max_iterations=2)
    assert (result.answer, result.accepted, result.converged) == ("Take care and", False, False)
    assert (result.stopped, result.needs_review) == ("budget", True)
    assert result.end_states["incomplete"] is True
    assert any("breaks off" in warning for warning in result.warnings)


def test_as_published_a_reply_cut_at_the_limit_is_the_answer_and_says_so():
    replies = first_cut(9)
    loop = Loop([0], [1], generate=replies)
    result = loop.run(cut_replies="keep")
    assert loop.order() == ["generate", *JUDGED]  # one limit for all: nobody is asked again with more tokens
    assert (result.answer, result.accepted, result.converged) == ("Take care and", True, True)
    assert result.needs_review
    assert result.end_states["incomplete"] is True


def test_as_published_an_evaluator_is_asked_again_within_the_same_limit():
    sent = []

    def ethics(request):
        sent.append(request)
        return cut('{"I_reason": "no')(request)

    result = Loop([0], [1], ethics=ethics).run(cut_replies="keep", max_iterations=1, final_check=False)
    assert [r.config.max_tokens for r in sent] == [200, 200]
    assert "be shorter" in str(sent[1].messages)
    assert (result.converged, result.accepted) == (None, False)


def test_a_cut_assessment_is_no_assessment_in_either_way():
    for how in ("revise", "keep"):
        reply = json.dumps({f"{n}_violated": False for n in ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")})
        loop = Loop([0], [1], ethics=cut(reply[:-1]))
        assert loop.run(cut_replies=how, max_iterations=1, final_check=False).ama is None


def test_a_gate_does_not_let_a_text_pass_that_breaks_off():
    loop = Loop([0], [1], generate=first_cut(2), gate={"reason": "plain", "risky": False})
    result = loop.run(gate="lm")
    assert "gate" not in loop.calls
    assert result.refinement.gate.entered
    assert result.accepted


def test_thoughts_that_were_cut_are_no_answer():
    result = Loop([0], [1], generate=cut("<think>The patient wants ten tablets")).run()
    assert (result.answer, result.stopped, result.converged) == (None, "generation", None)


def test_a_whole_candidate_goes_on_rather_than_one_that_breaks_off():
    loop = Loop([0], [1], generate=first_cut(3))  # the first generator's twice, the second's once
    result = loop.run(generators=2)
    (version,) = result.refinement.versions
    assert (version.draft.incomplete, version.consensus.accepted) == (False, True)
