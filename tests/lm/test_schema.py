from typing import Literal

import dspy
import pytest

from dspy_mama.lm.schema import ITEM_LIMIT, TEXT_LIMIT, FieldSpec, field_specs, json_schema, restrict


class Everything(dspy.Signature):
    """Task: everything."""

    question: str = dspy.InputField()
    text: str = dspy.OutputField()
    short: str = dspy.OutputField(max_length=20)
    label: bool = dspy.OutputField(desc="true if so")
    choice: Literal["Heart", "Lung"] = dspy.OutputField()
    numbers: list[int] = dspy.OutputField()


SPECS = {spec.name: spec for spec in field_specs(Everything.with_updated_fields("choice", aliases={"Cardio": "Heart"}))}


def test_every_output_has_a_specification_in_order():
    assert list(SPECS) == ["text", "short", "label", "choice", "numbers"]
    assert [spec.kind for spec in SPECS.values()] == ["text", "text", "bool", "enum", "numbers"]


def test_texts_and_lists_are_always_bounded():
    assert (SPECS["text"].limit, SPECS["short"].limit, SPECS["numbers"].limit) == (TEXT_LIMIT, 20, ITEM_LIMIT)


def test_only_lists_are_not_asked_for_again():
    assert [name for name, spec in SPECS.items() if not spec.required] == ["numbers"]


def test_the_schema_is_closed_and_ordered():
    schema = json_schema(list(SPECS.values()))["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == list(SPECS)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["choice"] == {"type": "string", "enum": ["Heart", "Lung"]}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("Heart", "Heart"),
        ("heart.", "Heart"),
        ("**LUNG**", "Lung"),
        ("cardio", "Heart"),
        ("Brain", None),
        ("", None),
        ("Heart or Lung", None),
        (None, None),
        (["Heart"], "Heart"),
    ],
)
def test_a_closed_set_takes_its_options_and_their_other_spellings_only(given, read):
    assert SPECS["choice"].read(given) == read


def test_numbers_are_restricted_to_those_that_exist():
    (spec,) = restrict([SPECS["numbers"]], {"numbers": range(1, 4)})
    assert spec.schema()["items"] == {"enum": [1, 2, 3]}


def test_descriptions_say_the_form_and_the_meaning():
    assert SPECS["label"].describe() == "- label (true or false): true if so"
    assert SPECS["choice"].describe().startswith("- choice (one of Heart, Lung)")
    assert FieldSpec("x", "text", "why", 20).describe() == "- x (text of at most 20 characters): why"


def test_signatures_that_differ_in_a_description_alone_are_told_apart():
    other = Everything.with_updated_fields("label", desc="true if not")
    assert {spec.name: spec for spec in field_specs(other)}["label"].desc == "true if not"
