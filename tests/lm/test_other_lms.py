import json
from types import SimpleNamespace as Raw

import dspy
import pytest
from dspy.utils.dummies import DummyLM

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.predict import reading_of
from lm.signatures import GOOD, PAIR, judge
from scripted import AsyncScriptedEngine, ScriptedEngine

pytestmark = pytest.mark.filterwarnings("ignore")


def raw(text):
    return Raw(choices=[Raw(message=Raw(content=text))], usage={}, model="legacy-1")


class Legacy(dspy.BaseLM):
    """An LM as plugins wrote them before engines: only `forward`."""

    def __init__(self, reply):
        super().__init__("legacy")
        self.reply = reply
        self.calls = []

    def forward(self, prompt=None, messages=None, **kwargs):
        self.calls.append(messages)
        if isinstance(self.reply, Exception):
            raise self.reply
        return raw(self.reply)


class AsyncLegacy(Legacy):
    async def aforward(self, prompt=None, messages=None, **kwargs):
        return self.forward(prompt, messages, **kwargs)


@pytest.mark.parametrize("kind", [Legacy, AsyncLegacy])
def test_a_legacy_subclass_answers_and_its_unknown_usage_stays_unknown(kind):
    prediction = judge(kind(json.dumps(GOOD)))(**PAIR)
    usage = reading_of(prediction).usage
    assert prediction.risk is True
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost) == (1, None, None, None)


@pytest.mark.parametrize("reply", [None, ""])
def test_a_legacy_subclass_that_says_nothing_is_asked_again(reply):
    lm = Legacy(reply)
    assert reading_of(judge(lm)(**PAIR)).outcomes["risk"].kind == "parse"
    assert len(lm.calls) == 2


@pytest.mark.parametrize("error", [ConnectionError("gone"), RuntimeError("CUDA out of memory"), KeyError("choices")])
def test_an_error_of_a_legacy_subclass_is_an_infra_outcome(error):
    outcome = reading_of(judge(Legacy(error))(**PAIR)).outcomes["risk"]
    assert outcome.kind == "infra"
    assert type(error).__name__ in outcome.reason


def test_a_legacy_subclass_without_choices_gives_an_outcome():
    lm = Legacy("")
    lm.forward = lambda **_: Raw(choices=[], usage={}, model="m")
    assert reading_of(judge(lm)(**PAIR)).outcomes["risk"].kind in ("parse", "infra")


def test_dspys_dummy_lm_is_read_in_its_own_format():
    prediction = judge(DummyLM([{"reason": "wrong dose", "risk": "True"}]))(**PAIR)
    assert (prediction.reason, prediction.risk) == ("wrong dose", True)


def test_an_engine_without_an_async_twin_answers():
    engine = ScriptedEngine(lambda request: GOOD)
    lm = dspy.LM("scripted/sync", engine=engine, cache=False)
    assert judge(lm)(**PAIR).risk is True
    assert len(engine.requests) == 1


async def test_an_engine_without_an_async_twin_answers_from_async_code():
    lm = dspy.LM("scripted/sync", engine=ScriptedEngine(lambda request: GOOD), cache=False)
    assert (await judge(lm).acall(**PAIR)).risk is True


def test_a_failing_engine_is_an_infra_outcome():
    engine = ScriptedEngine(lambda request: ZeroDivisionError("engine bug"))
    lm = dspy.LM("scripted/x", engine=engine, async_engine=AsyncScriptedEngine(engine), cache=False, num_retries=0)
    outcome = reading_of(judge(lm)(**PAIR)).outcomes["risk"]
    assert outcome.kind == "infra"
    assert "engine bug" in outcome.reason


@pytest.mark.parametrize("model", ["no-such-provider/x", "no-provider-at-all"])
def test_an_unknown_model_is_a_declaration_error(model, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DeclarationError, match="the LM cannot be used"):
        judge(dspy.LM(model, cache=False, num_retries=0))(**PAIR)
