import pytest

from dspy_mama.lm.gate import Gate
from dspy_mama.lm.predict import reading_of
from dspy_mama.lm.profile import LMProfile, set_profile
from dspy_mama.lm.usage import CallUsage, total
from lm.signatures import GOOD, PAIR, judge
from scripted import scripted_lm


def test_sums_add_every_figure():
    one = CallUsage(1, 10, 4, 5, 0.5, 0.01, 1, 0, 0)
    two = CallUsage(2, 20, 0, 7, 1.0, 0.02, 0, 1, 1)
    assert total([one, two]) == CallUsage(3, 30, 4, 12, 1.5, 0.03, 1, 1, 1)


def test_nothing_costs_nothing():
    assert total([]).to_dict() == {
        "calls": 0, "prompt_tokens": 0, "cached_tokens": 0, "completion_tokens": 0, "seconds": 0.0, "cost": 0.0,
        "retries": 0, "reasks": 0, "cache_hits": 0,
    }  # fmt: skip


@pytest.mark.parametrize("field", ["prompt_tokens", "cached_tokens", "completion_tokens", "cost"])
def test_unknown_plus_known_is_unknown(field):
    parts = [CallUsage(calls=1, **{field: None}), CallUsage(calls=1, prompt_tokens=3, completion_tokens=3, cost=1.0)]
    assert getattr(total(parts), field) is None
    assert total(parts).to_dict()[field] is None


def test_a_known_price_gives_a_cost():
    lm = scripted_lm(lambda request: GOOD)
    set_profile(lm, LMProfile(gate=Gate(), price_input=2.0, price_output=10.0))
    assert reading_of(judge(lm)(**PAIR)).usage.cost == pytest.approx((100 * 2 + 20 * 10) / 1e6)


def test_half_a_price_is_an_unknown_cost():
    lm = scripted_lm(lambda request: GOOD)
    set_profile(lm, LMProfile(gate=Gate(), price_input=2.0))
    assert reading_of(judge(lm)(**PAIR)).usage.cost is None


def test_dspys_own_estimate_is_used_for_a_model_that_it_prices(serve):
    from lm.chat_server import completion

    lm, _ = serve(lambda number, body: (200, {}, completion(GOOD, model="gpt-4o")))
    lm.model = "openai/gpt-4o"
    cost = reading_of(judge(lm)(**PAIR)).usage.cost
    assert cost == pytest.approx((50 * 2.5 + 7 * 10) / 1e6)


def _priced(model, **engine):
    import dspy
    from dspy.lm15 import Message, Response, TextPart, Usage

    from dspy_mama.lm.prices import cost_of
    from dspy_mama.lm.privacy import keep_local

    keep_local()
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    answer = Response(None, model.split("/")[-1], Message(role="assistant", parts=(TextPart("x"),)), "stop", usage)
    return cost_of(dspy.LM(model, api_key="x", **engine), answer)


def test_a_listed_model_has_its_price_also_when_dspy_keeps_no_history():
    import dspy

    with dspy.context(disable_history=True):
        assert _priced("openai/gpt-4o") == pytest.approx(2.5 + 10.0)


def test_an_unlisted_model_costs_unknown_and_not_nothing():
    assert _priced("openai/a-model-of-my-own") is None
