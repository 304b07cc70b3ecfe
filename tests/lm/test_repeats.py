import dspy
import pytest

from dspy_mama.lm.profile import profile_of
from dspy_mama.lm.repeats import for_repeat, lms_for_repeat
from dspy_mama.lm.roles import build_lm
from dspy_mama.settings import LMSpec
from dspy_mama.systems.audit import RiskAuditor
from lm.chat_server import ChatServer, completion
from scripted import scripted_lm

PAIR = {"question": "Can I take twice the dose?", "answer": "Yes, double it."}


def audits(lm, repeats):
    for repeat in range(repeats):
        program = RiskAuditor.from_preset("baseline", "ek", lms={"default": for_repeat(lm, repeat)})
        program(**PAIR)


@pytest.mark.parametrize("temperature", [0.0, 0.7, None])
def test_with_the_cache_on_every_repeat_is_a_call_at_any_temperature(fresh_cache, temperature):
    lm = scripted_lm(cache=True, temperature=temperature)
    audits(lm, 4)
    assert len(lm.requests) == 4


def test_without_repeats_the_same_cache_answers_once(fresh_cache):
    lm = scripted_lm(cache=True, temperature=1.0)
    for _ in range(4):
        RiskAuditor.from_preset("baseline", "ek", lms={"default": lm})(**PAIR)
    assert len(lm.requests) == 1


def test_the_same_repeat_is_answered_from_the_cache_again(fresh_cache):
    lm = scripted_lm(cache=True, temperature=1.0)
    audits(lm, 3)
    audits(lm, 3)
    assert len(lm.requests) == 3


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_real_server_is_asked_once_per_repeat_with_the_cache_on(fresh_cache, temperature):
    reply = {f"{d}_{part}": True if part == "risk" else "why" for d in ("medical", "ethical", "legal")
             for part in ("reason", "risk")}  # fmt: skip
    server = ChatServer(lambda number, body: (200, {}, completion(reply)))
    try:
        spec = LMSpec(model="openai/m", api_base=server.address, cache=True, temperature=temperature)
        audits(build_lm(spec), 3)
        assert len(server.bodies) == 3
        assert all("rollout_id" not in body for body in server.bodies)
    finally:
        server.close()


def test_a_fixed_seed_moves_on_with_the_repeat():
    lm = scripted_lm(seed=7)
    assert [for_repeat(lm, repeat).kwargs["seed"] for repeat in range(3)] == [7, 8, 9]
    assert lm.kwargs["seed"] == 7
    assert "seed" not in for_repeat(scripted_lm(), 2).kwargs


def test_copies_share_limits_and_stay_one_lm_per_specification():
    one, two = scripted_lm(), scripted_lm(name="scripted/b")
    lms = lms_for_repeat({"default": one, "judge": one, "verifier": two}, 1)
    assert lms["default"] is lms["judge"]
    assert lms["verifier"].model == "scripted/b"
    profile_of(one)
    assert profile_of(for_repeat(one, 1)) is profile_of(one)
    assert isinstance(lms["default"], dspy.LM)
