import copy

import dspy
import pytest

from dspy_mama.lm.profile import LMProfile, has_profile, probe, profile_of, set_profile
from scripted import ScriptedEngine


@pytest.mark.parametrize(
    ("model", "schema", "logprobs"),
    [("openai/gpt-4o", True, True), ("openai/o3-mini", True, False), ("openai/gpt-5-nano", True, False)],
)
def test_abilities_are_as_dspy_knows_them_and_reasoning_models_give_no_logprobs(model, schema, logprobs):
    known = probe(dspy.LM(model))
    assert (known.json_schema, known.logprobs) == (schema, logprobs)


def test_unknown_abilities_count_as_no():
    class Bare:
        complete = ScriptedEngine.complete

    known = probe(dspy.LM("scripted/bare", engine=Bare()))
    assert (known.json_schema, known.logprobs) == (False, False)


def test_a_profile_is_made_once_and_copies_share_it():
    lm = dspy.LM("scripted/x", engine=ScriptedEngine())
    assert not has_profile(lm)
    profile = profile_of(lm)
    assert has_profile(lm)
    assert profile_of(lm.copy(rollout_id=1)) is profile
    assert profile_of(copy.deepcopy(lm)) is profile
    other = LMProfile(top_logprobs=9)
    set_profile(lm, other)
    assert profile_of(lm) is other


def test_a_withdrawn_ability_is_told_once(caplog):
    profile = LMProfile(logprobs=True)
    profile.withdraw("logprobs", "not supported")
    assert profile.logprobs is False
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "logprobs" in caplog.text
