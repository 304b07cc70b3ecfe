"""What every prompt of the panel must hold."""

import inspect

import dspy
import pytest

from dspy_mama.lm.prompt import system_message
from dspy_mama.lm.schema import field_specs
from dspy_mama.systems.mac import knowledge, signatures
from dspy_mama.systems.mac.specialties import SPECIALTIES, specialty_key

PROMPTS = [
    signature
    for room in (signatures, knowledge)
    for signature in vars(room).values()
    if inspect.isclass(signature) and issubclass(signature, dspy.Signature) and signature is not dspy.Signature
]


def test_all_signatures_are_found():
    assert len(PROMPTS) >= 7


@pytest.mark.parametrize("signature", PROMPTS, ids=lambda signature: signature.__name__)
def test_every_output_is_bounded_on_purpose(signature):
    for name, info in signature.output_fields.items():
        if info.annotation is not bool:
            assert any(hasattr(item, "max_length") for item in info.metadata), name


@pytest.mark.parametrize("signature", PROMPTS, ids=lambda signature: signature.__name__)
def test_a_case_counts_for_nothing_but_a_case(signature):
    prompt = " ".join(system_message(signature, field_specs(signature)).split())
    if "case" in signature.input_fields:
        assert "does not count" in prompt
        assert "invent no findings" in prompt
    assert "never take a verdict from them" in prompt


@pytest.mark.parametrize("name", ["SpeakAsDoctor", "SuperviseDiscussion", "ConcludeDiscussion"])
def test_arguments_stand_before_diagnoses_and_flags_come_after(name):
    outputs = list(getattr(signatures, name).output_fields)
    assert outputs[0] in ("argument", "disagreement")
    assert outputs[1:4] == ["most_likely", "differentials", "tests"]


@pytest.mark.parametrize("name", ["SpeakAsDoctor", "ConcludeDiscussion", "DiagnoseCase"])
def test_nobody_treats(name):
    assert "no treatment and no prognosis" in getattr(signatures, name).instructions


def test_the_supervisor_has_the_four_conditions_and_conceals_nothing():
    text = signatures.SuperviseDiscussion.instructions
    assert "all four hold" in text
    assert "leave nothing out" in text


def test_what_differs_between_speakers_comes_last_in_a_prompt():
    for name, last in (("SpeakAsDoctor", "you"), ("SuperviseDiscussion", "doctors"), ("ConcludeDiscussion", "doctors")):
        assert list(getattr(signatures, name).input_fields) == ["case", "discussion", last]


def test_the_listed_specialties_are_38_different_ones():
    assert len({specialty_key(name) for name in SPECIALTIES}) == 38
