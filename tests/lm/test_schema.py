from typing import Annotated, Literal

import dspy
import pytest
from pydantic import Field

from dspy_mama.lm.schema import ENTRY_LIMIT, ITEM_LIMIT, TEXT_LIMIT, FieldSpec, field_specs, json_schema, restrict


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


def test_a_limit_can_be_set_anew():
    other = Everything.with_updated_fields("short", limit=70).with_updated_fields("numbers", limit=2)
    limits = {spec.name: spec.limit for spec in field_specs(other)}
    assert (limits["short"], limits["numbers"], limits["text"]) == (70, 2, TEXT_LIMIT)


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


class Lists(dspy.Signature):
    """Task: lists."""

    case: str = dspy.InputField()
    tests: list[Annotated[str, Field(max_length=12)]] = dspy.OutputField(desc="what to do next", max_length=2)
    open: list[str] = dspy.OutputField()
    score: Literal[0, 20, 50] = dspy.OutputField(desc="how good")


LISTS = {spec.name: spec for spec in field_specs(Lists)}


def test_lists_of_texts_and_their_entries_are_always_bounded():
    assert (LISTS["tests"].kind, LISTS["tests"].limit, LISTS["tests"].entry_limit) == ("texts", 2, 12)
    assert (LISTS["open"].limit, LISTS["open"].entry_limit) == (ITEM_LIMIT, ENTRY_LIMIT)
    entry = {"type": "string", "minLength": 1, "maxLength": 12}
    assert LISTS["tests"].schema() == {"type": "array", "items": entry, "maxItems": 2}
    assert SPECS["short"].schema() == {"type": "string", "minLength": 1, "maxLength": 20}
    assert (
        LISTS["tests"].describe() == "- tests (list of at most 2 texts of at most 12 characters each): what to do next"
    )
    (narrowed,) = restrict([LISTS["open"]], {"open": ["Cardiology"]})
    assert narrowed.schema()["items"] == {"type": "string", "enum": ["Cardiology"]}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["CT", " MRI\nof the head "], ("CT", "MRI of the hea"[:12])),
        (["CT", "", None, "CT", "MRI", "X-ray"], ("CT", "MRI")),
        ("- CT\n- MRI", ("CT", "MRI")),
        ("1. CT\n2) MRI", ("CT", "MRI")),
        ("CT, MRI", ("CT, MRI",)),
        ({"1": "CT"}, ("CT",)),
        ([], ()),
        ("none", ()),
        (None, None),
        (3, None),
    ],
)
def test_a_list_of_texts_is_read_from_its_usual_forms_and_never_grows_past_its_bounds(given, read):
    assert LISTS["tests"].read(given) == read


def test_a_list_of_texts_may_be_empty_but_not_absent():
    assert LISTS["open"].required
    assert LISTS["open"].read([]) == ()


def test_a_closed_set_of_numbers_is_enforced_and_read_as_numbers():
    assert LISTS["score"].schema() == {"type": "integer", "enum": [0, 20, 50]}
    assert [LISTS["score"].read(given) for given in (20, "50", 0, 20.0, "0.")] == [20, 50, 0, 20, 0]
    assert [LISTS["score"].read(given) for given in (30, "20 or 50", 20.5, True, None)] == [None] * 5
