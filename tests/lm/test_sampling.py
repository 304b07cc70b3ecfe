"""Settings that a model refuses are translated, and what was sent instead is known."""

import pytest

from dspy_mama.lm.profile import profile_of
from dspy_mama.lm.roles import build_lms
from dspy_mama.settings import LMSettings, LMSpec


def built(monkeypatch, model):
    monkeypatch.setenv("WARD_LM_KEY", "not-a-key")
    spec = LMSpec(model=model, api_key_env="WARD_LM_KEY", temperature=0.7, max_tokens=512)
    return next(iter(build_lms(LMSettings(name="ward", default=spec)).values()))


@pytest.mark.parametrize("model", ["openai/o3-mini", "openai/gpt-5-nano"])
def test_reasoning_models_get_no_temperature_and_room_to_reason(monkeypatch, model):
    lm = built(monkeypatch, model)
    assert lm.kwargs.get("temperature") is None
    assert profile_of(lm).effective["max_tokens"] >= 16000


def test_other_models_get_what_was_asked(monkeypatch):
    lm = built(monkeypatch, "openai/gpt-4o")
    assert (lm.kwargs["temperature"], lm.kwargs["max_tokens"]) == (0.7, 512)
    assert profile_of(lm).effective == {}
