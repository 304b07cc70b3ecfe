from pathlib import Path

import numpy as np
import pytest

from dspy_mama.core import Passage
from dspy_mama.tracking import scrub, scrub_text
from dspy_mama.tracking.scrub import environment_secrets

SECRET = "Zq8vT1-opaque-value"


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "HF_TOKEN", "MY_SECRET_VALUE", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD"]
)
def test_values_of_secret_variables_disappear_wherever_they_stand(monkeypatch, name):
    monkeypatch.setenv(name, SECRET)
    nested = {"a": [f"error: key {SECRET} refused"], SECRET: ({"b": SECRET},), "path": Path(f"/x/{SECRET}")}

    assert SECRET not in repr(scrub(nested))
    assert "error: key [redacted] refused" in repr(scrub(nested))


def test_placeholders_and_settings_that_only_sound_secret_leave_text_whole():
    names = {
        "TOKENIZERS_PARALLELISM": "parallel",
        "OPENAI_API_KEY": "dummy",
        "MAX_TOKENS": "10000000",
        "HOME": "/home/someone",
    }

    assert environment_secrets(names) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcDEF123456_7890",
        'headers={"Authorization": "Bearer abcdefGHIJ1234567890"}',
        "Authorization: Basic dXNlcjphYmNkZWZHSElKMTIzNDU2Nzg5MA==",
        "used token Bearer abcdefGHIJ1234567890",
        "https://user:abcdefGHIJ1234567890@host/v1",
        "https://host/v1?api_key=abcdefGHIJ1234567890&x=1",
        "hf_abcdefGHIJ1234567890",
    ],
)
def test_keys_in_error_texts_disappear(text):
    cleaned = scrub_text(text, ())

    assert "[redacted]" in cleaned
    assert not any(part in cleaned for part in ("abcDEF123456", "abcdefGHIJ", "dXNlcjph"))


@pytest.mark.parametrize(
    "text",
    [
        "a risk-assessment-of-the-answer and a task-specific-instruction-set",
        "The bearer of responsibilities is the physician.",
        "api_key_env: OPENAI_API_KEY",
        "See https://www.mhlw.go.jp/stf/seisakunitsuite/index.html @ 2024",
        "Authorization of a device is granted by the minister",
        "承認番号: 12345",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert scrub_text(text, ()) == text


def test_a_field_that_is_named_like_a_key_is_redacted_and_counts_are_not():
    given = {
        "api_key": "anything",
        "x-api-key": "q",
        "prompt_tokens": 5,
        "api_key_env": "MY_KEY",
        "probability_source": "token",
    }

    assert scrub(given) == given | {"api_key": "[redacted]", "x-api-key": "[redacted]"}


def test_everything_becomes_plain_json_data():
    given = {
        "p": Passage(id="d#1", text="t", domains=("legal",)),
        "n": np.float32(0.5),
        "a": np.arange(2),
        "s": {"b", "a"},
        1: None,
    }

    cleaned = scrub(given)

    assert (cleaned["n"], cleaned["a"], cleaned["s"], cleaned["1"]) == (0.5, [0, 1], ["a", "b"], None)
    assert cleaned["p"]["domains"] == ["legal"]
