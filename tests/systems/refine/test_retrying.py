"""Parts that failed on the way to the LM are asked for again, and nothing else is."""

import copy

import pytest

from dspy_mama.core.chat_request import ChatRequest, ChatTurn
from dspy_mama.systems.refine import SafetyRefiner, refine_record, retry_parts, with_spent, without_texts
from systems.refine.loops import Loop

DOWN = ConnectionError("connection refused")
REQUEST = ChatRequest("a", "May I?", history=(ChatTurn("patient", "I am pregnant."),))


def fails_at(number, reply):
    """Fails at one call alone."""
    seen = []

    def answer(request):
        seen.append(request)
        return DOWN if len(seen) == number else reply(request) if callable(reply) else reply

    return answer


async def refined(loop, **settings):
    program = SafetyRefiner(lms={"default": loop.lm}, **settings)
    found = await program.acall(question=REQUEST.question, history=REQUEST.history)
    return program, refine_record(REQUEST, found)


async def test_a_whole_record_asks_for_nothing():
    _, record = await refined(Loop([0], [1]))
    assert "retry" not in record
    assert "error" not in record


@pytest.mark.parametrize(
    ("kind", "part", "reply"),
    [
        ("classify", "category", {"reason": "why", "category": "emergency"}),
        ("helpfulness", "helpfulness", {"reason": "why", "refusal": True, "vague": False}),
    ],
)
async def test_one_check_is_asked_again_and_the_rest_stays(kind, part, reply):
    loop = Loop([3, 0], [3, 1], **{kind: fails_at(1, reply)})
    program, record = await refined(loop)
    assert record["retry"] == [part]
    assert "connection refused" in record["error"]
    before, made = copy.deepcopy(record), len(loop.calls)
    mended = await retry_parts(program, REQUEST, record)
    assert loop.calls[made:] == [kind]
    assert mended[part]["outcome"] == "scored"
    assert "retry" not in mended
    assert mended["versions"] == before["versions"]
    calls = sum(usage["calls"] for usage in mended["usage"].values())
    assert calls == sum(usage["calls"] for usage in before["usage"].values()) + 1 == len(loop.calls) - 1
    if part == "helpfulness":
        assert mended["end_states"]["refusal"] is True
    else:
        assert mended["category"]["value"] == "emergency"


async def test_what_fails_once_more_is_still_named():
    loop = Loop([0], [1], helpfulness=DOWN)
    program, record = await refined(loop)
    assert (await retry_parts(program, REQUEST, record))["retry"] == ["helpfulness"]


async def test_the_final_check_is_made_again_on_the_same_text():
    judged = []

    def safety(request):
        judged.append(request)
        return DOWN if len(judged) == 3 else {"reason": "why", "level": 5 if len(judged) < 3 else 1}

    loop = Loop([9, 9, 0], [5], safety=safety)
    program, record = await refined(loop, max_iterations=2)
    assert record["retry"] == ["last_version"]
    assert (record["final"]["accepted"], record["needs_review"], record["converged"]) == (False, True, False)
    made, text = len(loop.calls), record["versions"][-1]["text"]
    mended = await retry_parts(program, REQUEST, record)
    assert sorted(loop.calls[made:]) == ["ethics", "safety"]
    assert mended["versions"][-1]["text"] == text
    assert mended["final"] == {"version": 3, "assessed": True, "accepted": True}
    assert (mended["needs_review"], mended["converged"]) == (False, False)
    assert sum(version["returned"] for version in mended["versions"]) == 1
    assert mended["usage"]["ethics"]["calls"] == 4


async def test_a_last_revision_that_failed_is_written_again_and_looked_at():
    loop = Loop([9, 9, 0], [5, 5, 1], refine=fails_at(2, lambda _: {"reply": f"mended {len(loop.calls)}"}))
    program, record = await refined(loop, max_iterations=2)
    assert (record["retry"], record["final"]["version"]) == (["last_version"], 2)
    made = len(loop.calls)
    mended = await retry_parts(program, REQUEST, record)
    assert sorted(loop.calls[made:]) == ["ethics", "helpfulness", "refine", "safety"]
    assert mended["final"] == {"version": 3, "assessed": True, "accepted": True}
    assert not any("not assessed" in warning for warning in mended["warnings"])
    assert [version["returned"] for version in mended["versions"]] == [False, False, True]


async def test_as_published_a_last_revision_is_written_again_and_not_assessed():
    loop = Loop([9], [5], refine=fails_at(2, {"reply": "mended"}))
    program, record = await refined(loop, max_iterations=2, final_check=False, helpfulness=False)
    made = len(loop.calls)
    mended = await retry_parts(program, REQUEST, record)
    assert loop.calls[made:] == ["refine"]
    assert mended["final"] == {"version": 3, "assessed": False, "accepted": None}
    assert "the returned text is the last revision and was not assessed" not in record["warnings"]
    assert "the returned text is the last revision and was not assessed" in mended["warnings"]


async def test_a_missing_score_needs_the_whole_loop_and_what_was_spent_is_counted():
    loop = Loop([0], [1], ethics=DOWN)
    program, record = await refined(loop, max_iterations=1, final_check=False)
    assert record["outcomes"] == {"ama": "infra", "sra": "scored"}
    assert record["retry"] == ["loop"]
    assert await retry_parts(program, REQUEST, record) is None
    _, again = await refined(Loop([0], [1]))
    both = with_spent(again, record)
    assert both["usage"]["safety"]["calls"] == 2
    assert both["usage"]["generator"]["calls"] == 2


async def test_without_stored_texts_only_the_category_can_be_had_alone():
    loop = Loop([0], [1], classify=fails_at(1, {"reason": "why", "category": "emergency"}))
    program, record = await refined(loop)
    assert (await retry_parts(program, REQUEST, without_texts(record)))["category"]["value"] == "emergency"
    loop = Loop([0], [1], helpfulness=fails_at(1, {"reason": "why", "refusal": True, "vague": False}))
    program, record = await refined(loop)
    assert await retry_parts(program, REQUEST, without_texts(record)) is None
