import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.gate import Gate
from dspy_mama.lm.predict import reading_of
from dspy_mama.lm.profile import profile_of
from lm.chat_server import completion, fault
from lm.signatures import GOOD, PAIR, judge

OK = (200, {}, completion(GOOD))
LIMITED = (429, {"Retry-After": "0.05"}, fault("slow down", "rate_limit_exceeded", "requests"))


def replies(*steps):
    """Answers step by step; the last step again and again."""
    return lambda number, body: steps[min(number, len(steps)) - 1]


def outcome(serve, *steps, **settings):
    lm, server = serve(replies(*steps), **settings)
    reading = reading_of(judge(lm)(**PAIR))
    return reading.outcomes["risk"], reading, server


def test_rate_limits_never_use_up_the_second_ask(serve):
    unreadable = (200, {}, completion("no idea"))
    found, reading, server = outcome(serve, LIMITED, LIMITED, unreadable, LIMITED, LIMITED, OK)
    assert found.value is True
    assert (len(server.bodies), reading.usage.calls) == (6, 2)
    assert (reading.usage.retries, reading.usage.reasks) == (4, 1)


def test_rate_limits_met_by_dspys_own_retries_do_not_use_it_up_either(serve):
    found, reading, server = outcome(serve, LIMITED, LIMITED, OK, gate=Gate(), num_retries=3)
    assert found.value is True
    assert (len(server.bodies), reading.usage.reasks) == (3, 0)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
def test_server_errors_are_retried(serve, status):
    found, reading, _ = outcome(serve, (status, {}, fault("down", kind="server_error")), OK)
    assert found.value is True
    assert reading.usage.retries == 1


def test_a_server_that_stays_down_is_an_infra_outcome_and_its_repeats_are_counted(serve):
    found, reading, server = outcome(serve, (500, {}, fault("down", kind="server_error")))
    assert (found.kind, found.raw) == ("infra", None)
    assert "\n" not in found.reason
    assert (len(server.bodies), reading.usage.calls, reading.usage.retries, reading.usage.reasks) == (4, 0, 3, 0)


def test_what_was_read_stays_when_the_second_ask_fails(serve):
    partial = (200, {}, completion({"reason": "kept"}))
    found, reading, _ = outcome(serve, partial, (500, {}, fault("down", kind="server_error")))
    assert found.kind == "parse"
    assert reading.value("reason") == "kept"
    assert reading.usage.retries == 3


def test_an_address_where_nothing_listens_is_an_infra_outcome(serve):
    lm, server = serve(replies(OK))
    server.close()
    assert reading_of(judge(lm)(**PAIR)).outcomes["risk"].kind == "infra"


def test_a_server_that_is_too_slow_is_an_infra_outcome(serve):
    def slow(number, body):
        time.sleep(0.6)
        return OK

    lm, _ = serve(slow, timeout=0.15, gate=Gate())
    assert reading_of(judge(lm)(**PAIR)).outcomes["risk"].kind == "infra"


@pytest.mark.parametrize("garbage", [b"<html>504</html>", b"", b"{", b"[]", b"null", b'{"choices": []}', b'{"a": 1}'])
def test_a_body_that_is_no_completion_is_an_outcome(serve, garbage):
    found, _, _ = outcome(serve, (200, {}, garbage), gate=Gate())
    assert found.kind in ("infra", "parse")


@pytest.mark.parametrize(
    "step",
    [
        (401, {}, fault("Incorrect API key", "invalid_api_key")),
        (403, {}, fault("Forbidden")),
        (404, {}, fault("The model `served` does not exist", "model_not_found")),
        (402, {}, fault("Insufficient balance", "insufficient_balance")),
        (429, {}, fault("You exceeded your current quota", "insufficient_quota", "insufficient_quota")),
    ],
)
def test_a_wrong_key_model_or_account_is_a_declaration_error_after_one_call(serve, step):
    lm, server = serve(replies(step))
    with pytest.raises(DeclarationError, match="the LM cannot be used"):
        judge(lm)(**PAIR)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens.",
        "the request exceeds the available context size (exceed_context_size_error)",
    ],
)
def test_a_prompt_that_does_not_fit_is_an_invalid_input(serve, message):
    found, _, server = outcome(serve, (400, {}, fault(message, "context_length_exceeded")))
    assert found.kind == "invalid_input"
    assert len(server.bodies) == 1


def test_a_request_refused_by_the_providers_filter_is_refused(serve):
    found, _, _ = outcome(serve, (400, {}, fault("Azure content management policy", "content_filter")))
    assert found.kind == "refused"


def test_a_reply_cut_by_the_filter_is_refused(serve):
    found, _, server = outcome(serve, (200, {}, completion(None, finish="content_filter")))
    assert found.kind == "refused"
    assert len(server.bodies) == 1


def test_a_refusal_that_the_provider_marks_is_refused(serve):
    reply = completion(None)
    reply["choices"][0]["message"]["refusal"] = "I cannot."
    found, _, _ = outcome(serve, (200, {}, reply))
    assert (found.kind, found.raw) == ("refused", "I cannot.")


def test_content_null_at_the_token_limit_is_truncated_after_one_wider_call(serve):
    found, reading, server = outcome(serve, (200, {}, completion(None, finish="length")))
    assert found.kind == "truncated"
    limits = [body.get("max_tokens") or body.get("max_completion_tokens") for body in server.bodies]
    assert limits == [64, 128]
    assert reading.usage.reasks == 1


@pytest.mark.parametrize(
    ("message", "ability"),
    [
        ("'logprobs' is not supported with this model", "logprobs"),
        ("Invalid schema for response_format 'reply': 'maxLength' is not permitted", "json_schema"),
    ],
)
def test_an_ability_that_the_server_refuses_is_withdrawn_once_and_for_all(serve, message, ability):
    key = {"logprobs": "logprobs", "json_schema": "response_format"}[ability]

    def picky(number, body):
        return (400, {}, fault(message)) if body.get(key) else OK

    lm, server = serve(picky, logprobs=True)
    assert judge(lm)(**PAIR).risk is True
    assert getattr(profile_of(lm), ability) is False
    assert judge(lm)(**PAIR).risk is True
    assert [bool(body.get(key)) for body in server.bodies] == [True, False, False]


def test_another_bad_request_is_an_outcome_and_not_repeated(serve):
    found, _, server = outcome(serve, (400, {}, fault("temperature must be at most 1")))
    assert found.kind == "infra"
    assert len(server.bodies) == 1


def test_usage_that_the_server_does_not_report_stays_unknown(serve):
    _, reading, _ = outcome(serve, (200, {}, {k: v for k, v in completion(GOOD).items() if k != "usage"}))
    assert (reading.usage.calls, reading.usage.prompt_tokens, reading.usage.completion_tokens) == (1, None, None)
    assert reading.usage.cost is None


def test_the_resolved_model_is_kept(serve):
    _, reading, _ = outcome(serve, (200, {}, completion(GOOD, model="served-2026-01-01")))
    assert reading.model == "served-2026-01-01"


def test_one_rate_limit_holds_every_call_of_the_lm_back(serve):
    def script(number, body):
        return (429, {"Retry-After": "0.3"}, fault("slow down", "rate_limit_exceeded")) if number == 1 else OK

    lm, server = serve(script, gate=Gate(retries=2, max_concurrency=1))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: judge(lm)(**PAIR).risk, range(4)))
    assert found == [True] * 4
    assert min(server.starts[1:]) - server.starts[0] >= 0.3


def test_concurrency_is_bounded_over_threads(serve):
    def script(number, body):
        time.sleep(0.02)
        return OK

    lm, server = serve(script, gate=Gate(max_concurrency=2))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: judge(lm)(**PAIR), range(12)))
    assert len(server.bodies) == 12
    assert server.most_in_flight == 2


def test_logprobs_of_a_real_reply_give_the_labels_probability(serve):
    reply = completion('{"reason":"x","risk":true}')
    entries = [('{"reason":"x","risk":', -0.01, []), ("true", -0.2231, [("true", -0.2231), ("false", -1.6094)])]
    reply["choices"][0]["logprobs"] = {
        "content": [
            {"token": t, "logprob": p, "bytes": None, "top_logprobs": [{"token": a, "logprob": b} for a, b in top]}
            for t, p, top in [*entries, ("}", -0.01, [])]
        ]
    }
    _, reading, server = outcome(serve, (200, {}, reply), logprobs=True)
    assert reading.probabilities["risk"] == pytest.approx(0.8, abs=1e-3)
    assert (server.bodies[0]["logprobs"], server.bodies[0]["top_logprobs"]) == (True, 5)
