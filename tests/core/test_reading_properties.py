import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_mama.core.reading import (
    is_refusal,
    read_bool,
    read_fields,
    read_numbers,
    read_probability,
    read_text,
    strip_reasoning,
)
from dspy_mama.core.untrusted import neutralise

SIGNS = ["{", "}", "[", "]", '"', "'", ":", ",", "\\", "<think>", "</think>", '"risk"', "true", "False", "null", "はい"]
PIECES = st.sampled_from(
    [*SIGNS, "**", "[[", "##", "［［", "<|", "|>", "1e999", "-", "\n", "[[ ## risk ## ]]", "\u200b", "\ud800", "\x00"]
)
TEXTS = st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS)
def test_reading_any_text_ends_in_a_value_or_in_none(text, material):
    answer, _ = strip_reasoning(text)
    is_refusal(answer)
    found = read_fields(answer, ["risk", "reason"], material)
    assert found is None or set(found) <= {"risk", "reason"}
    for value in (found or {}).values():
        assert read_bool(value) in (True, False, None)
        assert (read_text(value) or "").encode("utf-8") is not None


@settings(max_examples=200, deadline=None)
@given(PLAIN)
def test_reading_any_value_ends_in_its_type_or_in_none(value):
    assert read_bool(value) in (True, False, None)
    assert read_text(value) != ""
    numbers, probability = read_numbers(value), read_probability(value)
    assert numbers is None or all(isinstance(number, int) for number in numbers)
    assert probability is None or 0 <= probability <= 1


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_no_text_keeps_a_marker_and_doing_it_twice_changes_nothing(text):
    clean = neutralise(text)
    assert not re.search(r"\[\[\s*##|<\|[^|<>]{1,40}\|>|</?think>", clean)
    assert neutralise(clean) == clean
    clean.encode("utf-8")


@settings(max_examples=100, deadline=None)
@given(st.booleans(), st.text(max_size=40))
def test_a_json_reply_is_read_as_it_was_written(risk, reason):
    reply = json.dumps({"reason": reason, "risk": risk})
    answer, _ = strip_reasoning(reply)
    assert read_fields(answer, ["risk", "reason"]) == {"reason": reason, "risk": risk}


HOSTILE = [
    ("<think>", ""), ("</think>", ""), ("<think></think>", ""), ("{'a': 1}", ""), ('{"a": "', ""), ("[", ""), ("(", ""),
    ("[[ ## risk ## ]]\n", ""), ("{-", "1}"), ("i am sorry", ""), ("<think", ""), ("<|", ""), ("[[", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [f"{piece * 20_000}{end}" for piece, end in HOSTILE],
)
@pytest.mark.timeout(20)
def test_a_hostile_reply_of_any_length_is_read_in_no_time(text):
    answer, _ = strip_reasoning(text)
    assert not read_fields(answer, ["reason"], material="x" * 1000)
    neutralise(text)
