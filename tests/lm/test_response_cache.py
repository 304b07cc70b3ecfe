import dspy
import pytest

from dspy_mama.lm.predict import reading_of
from lm.chat_server import completion
from lm.signatures import GOOD, PAIR, judge
from scripted import response, scripted_lm

pytestmark = pytest.mark.usefixtures("fresh_cache")


def cached_lm(script, **settings):
    return scripted_lm(script, cache=True, **settings)


def test_the_same_call_twice_is_one_request_and_the_hit_costs_nothing():
    lm = cached_lm(lambda request: GOOD)
    first, second = (reading_of(judge(lm)(**PAIR)).usage for _ in range(2))
    assert len(lm.requests) == 1
    assert (first.cache_hits, first.prompt_tokens, first.cached_tokens, first.completion_tokens) == (0, 100, 60, 20)
    assert first.cost is None
    assert (second.cache_hits, second.prompt_tokens, second.cached_tokens, second.completion_tokens) == (1, 0, 0, 0)
    assert (second.calls, second.cost) == (1, 0.0)


def test_a_first_answer_without_usage_is_no_hit(serve):
    reply = {key: value for key, value in completion(GOOD).items() if key != "usage"}
    lm, server = serve(lambda number, body: (200, {}, reply), cache=True)
    first, second = (reading_of(judge(lm)(**PAIR)).usage for _ in range(2))
    assert (first.cache_hits, first.prompt_tokens, first.cost) == (0, None, None)
    assert (second.cache_hits, second.prompt_tokens, len(server.bodies)) == (1, 0, 1)


def test_repeats_with_their_own_rollout_are_calls_of_their_own():
    lm = cached_lm(lambda request: GOOD, temperature=1.0)
    for repeat in range(3):
        judge(lm, rollout_id=repeat)(**PAIR)
    assert len(lm.requests) == 3
    judge(lm)(**PAIR, config={"rollout_id": 2})
    assert len(lm.requests) == 3


def test_repeats_through_copies_of_an_lm_are_calls_of_their_own():
    lm = cached_lm(lambda request: GOOD, temperature=1.0)
    for repeat in range(3):
        judge(lm.copy(rollout_id=repeat))(**PAIR)
    assert len(lm.requests) == 3


def test_a_call_can_leave_the_cache_aside():
    lm = cached_lm(lambda request: GOOD)
    for _ in range(2):
        judge(lm)(**PAIR, config={"cache": False})
    assert len(lm.requests) == 2


def test_dspys_own_usage_tracker_counts_paid_calls_only():
    lm = cached_lm(lambda request: GOOD)
    with dspy.track_usage() as tracker:
        judge(lm)(**PAIR)
        judge(lm)(**PAIR)
    assert tracker.get_total_tokens()["scripted/a"]["prompt_tokens"] == 100


@pytest.mark.parametrize(
    "bad",
    [
        "I'm sorry, but I cannot assist with that.",
        "It is risky.",
        '{"reason": "x", "risk": "N/A"}',
        lambda request: response("{", request, finish="length"),
        lambda request: response("", request, finish="content_filter"),
    ],
)
def test_a_reply_that_gave_no_label_is_not_replayed_on_a_later_run(bad):
    replies = iter([bad, bad, GOOD, GOOD])
    first_calls = 2

    def script(request):
        reply = next(replies)
        return reply(request) if callable(reply) else reply

    lm = cached_lm(script)
    outcome = reading_of(judge(lm)(**PAIR)).outcomes["risk"]
    first_calls = len(lm.requests)
    if outcome.kind == "refused":
        next(replies)
    assert judge(lm)(**PAIR).risk is True
    assert len(lm.requests) == first_calls + 1


def test_a_forgotten_reply_is_gone_from_disk_too(tmp_path):
    before = dspy.cache
    try:
        dspy.configure_cache(enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=str(tmp_path))
        replies = iter(["I cannot help.", GOOD])
        lm = cached_lm(lambda request: next(replies))
        assert judge(lm)(**PAIR).risk is None
        dspy.cache.reset_memory_cache()
        assert judge(lm)(**PAIR).risk is True
        dspy.cache.reset_memory_cache()
        assert judge(lm)(**PAIR).risk is True
        assert len(lm.requests) == 2
    finally:
        dspy.cache = before


def test_a_pair_of_replies_that_gave_every_field_is_replayed():
    replies = iter(["no idea", GOOD])
    lm = cached_lm(lambda request: next(replies))
    assert judge(lm)(**PAIR).risk is True
    again = judge(lm)(**PAIR)
    assert again.risk is True
    assert (len(lm.requests), reading_of(again).usage.cache_hits) == (2, 2)


def test_sync_engines_are_cached_and_forgotten_in_the_same_way():
    lm = cached_lm(lambda request: GOOD)
    lm._async_engine_spec = None
    for _ in range(2):
        usage = reading_of(judge(lm)(**PAIR)).usage
    assert (len(lm.requests), usage.cache_hits) == (1, 1)
