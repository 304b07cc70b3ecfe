"""What a reply must hold: one specification per output field, and the JSON schema that servers enforce."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_origin

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.reading import read_bool, read_numbers, read_probability, read_text

Kind = Literal["bool", "text", "numbers", "enum", "probability"]

TEXT_LIMIT = 600
"""Characters of a text field without a limit of its own: a string without a bound can run to the token limit."""

ITEM_LIMIT = 6
"""Items of a list without a limit of its own."""

STATED_STEPS = tuple(round(step / 20, 2) for step in range(21))
"""Probabilities offered to a server that enforces schemas: its grammar knows no numeric range, but it knows an enum."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """How one output field is described, constrained and read.

    Attributes:
        name: Field name.
        kind: How it is read.
        desc: One clause for the prompt.
        limit: Characters of a text, or items of a list.
        options: The closed set of an `enum` field, or of a `numbers` field's items.
        required: Whether a reply without it is asked for again.
        aliases: Other spellings of an `enum`'s options, as (spelling, option).
    """

    name: str
    kind: Kind
    desc: str
    limit: int = TEXT_LIMIT
    options: tuple[Any, ...] = ()
    required: bool = True
    aliases: tuple[tuple[str, Any], ...] = ()

    def read(self, value: Any) -> Any | None:
        """Returns the field's value, or None where it cannot be read."""
        if self.kind == "bool":
            return read_bool(value)
        if self.kind == "numbers":
            return read_numbers(value)
        if self.kind == "probability":
            return read_probability(value)
        text = read_text(value)
        if self.kind == "enum" and text is not None:
            pairs = (*self.aliases, *((str(option), option) for option in self.options))
            folded = {spelling.casefold(): option for spelling, option in pairs}
            return folded.get(text.casefold().strip(".*`\"' "))
        return text

    def schema(self) -> dict[str, Any]:
        """Returns the field's JSON schema."""
        if self.kind == "bool":
            return {"type": "boolean"}
        if self.kind == "numbers":
            items: dict[str, Any] = {"enum": list(self.options)} if self.options else {"type": "integer"}
            return {"type": "array", "items": items, "maxItems": self.limit}
        if self.kind == "enum":
            return {"type": "string", "enum": [str(option) for option in self.options]}
        if self.kind == "probability":
            return {
                "type": "object",
                "properties": {"noul": {"enum": list(STATED_STEPS)}},
                "required": ["noul"],
                "additionalProperties": False,
            }
        return {"type": "string", "maxLength": self.limit}

    def describe(self) -> str:
        """Returns the field's line in the prompt."""
        form = {
            "bool": "true or false",
            "text": f"text of at most {self.limit} characters",
            "numbers": f"list of at most {self.limit} whole numbers",
            "enum": "one of " + ", ".join(str(option) for option in self.options),
            "probability": 'object {"noul": p} with p = probability from 0 to 1 that the answer is true',
        }[self.kind]
        return f"- {self.name} ({form}): {self.desc}"


def _kind_of(name: str, annotation: Any) -> tuple[Kind, tuple[Any, ...]]:
    if annotation is bool:
        return "bool", ()
    if annotation is str:
        return "text", ()
    if get_origin(annotation) is Literal:
        return "enum", get_args(annotation)
    if get_origin(annotation) is list and get_args(annotation) == (int,):
        return "numbers", ()
    if isinstance(annotation, type) and any(base.__name__ == "Noul" for base in annotation.__mro__):
        return "probability", ()
    raise DeclarationError(
        f"output field {name!r}: type {annotation!r} is not read here; use bool, str, Literal, list[int] or Noul"
    )


@functools.lru_cache(maxsize=512)
def field_specs(signature: Any) -> tuple[FieldSpec, ...]:
    """Returns the specifications of a signature's output fields, in order.

    Limits come from `OutputField(..., max_length=N)`, other spellings of a `Literal`'s options from
    `with_updated_fields(name, aliases={spelling: option})`. A list of numbers is never asked for again: citing
    nothing is an answer.

    Raises:
        DeclarationError: A field has a type that this library does not read.
    """
    specs = []
    for name, info in signature.output_fields.items():
        extra = info.json_schema_extra or {}
        kind, options = _kind_of(name, info.annotation)
        limits = [item.max_length for item in info.metadata if hasattr(item, "max_length")]
        limit = limits[0] if limits else ITEM_LIMIT if kind == "numbers" else TEXT_LIMIT
        desc = extra.get("desc", "")
        desc = "" if desc == f"${{{name}}}" else desc
        specs.append(
            FieldSpec(name, kind, desc, limit, options, kind != "numbers", tuple(extra.get("aliases", {}).items()))
        )
    return tuple(specs)


def restrict(specs: Sequence[FieldSpec], choices: Mapping[str, Sequence[int]]) -> tuple[FieldSpec, ...]:
    """Narrows number fields to the numbers that exist in this call, such as passage numbers."""
    return tuple(replace(s, options=tuple(choices[s.name])) if s.name in choices else s for s in specs)


def json_schema(specs: Sequence[FieldSpec]) -> dict[str, Any]:
    """Returns the `response_format` for a reply with exactly these fields, in this order."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": "reply",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {spec.name: spec.schema() for spec in specs},
                "required": [spec.name for spec in specs],
                "additionalProperties": False,
            },
        },
    }
