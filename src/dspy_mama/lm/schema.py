"""What a reply must hold: one specification per output field, and the JSON schema that servers enforce."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args, get_origin

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.reading import read_bool, read_numbers, read_probability, read_text, read_texts

Kind = Literal["bool", "text", "texts", "numbers", "enum", "probability"]

TEXT_LIMIT = 600
"""Characters of a text field without a limit of its own: a string without a bound can run to the token limit."""

ITEM_LIMIT = 6
"""Items of a list without a limit of its own."""

ENTRY_LIMIT = 120
"""Characters of an entry of a list of texts without a limit of its own."""

_WORD = re.compile(r"[^\W_]+")

STATED_STEPS = tuple(round(step / 20, 2) for step in range(21))
"""Probabilities offered to a server that enforces schemas: its grammar knows no numeric range, but it knows an enum."""


@dataclass(frozen=True, slots=True)
class Alone:
    """Marks a `bool` field whose one value has consequences: it counts only where no other word stands beside it.

    "true. Do not terminate yet" ends no discussion, "false. But see the dose" passes no gate; both are asked for again.

    Attributes:
        value: The value that must stand alone.
    """

    value: bool


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """How one output field is described, constrained and read.

    Attributes:
        name: Field name.
        kind: How it is read.
        desc: One clause for the prompt.
        limit: Characters of a text, or items of a list.
        options: The closed set of an `enum` field, or of a list's items.
        required: Whether a reply without it is asked for again.
        aliases: Other spellings of an `enum`'s options, as (spelling, option).
        entry_limit: Characters of each entry of a `texts` field.
        alone: The value of a `bool` field that must stand alone (see `Alone`), or None.
    """

    name: str
    kind: Kind
    desc: str
    limit: int = TEXT_LIMIT
    options: tuple[Any, ...] = ()
    required: bool = True
    aliases: tuple[tuple[str, Any], ...] = ()
    entry_limit: int = ENTRY_LIMIT
    alone: bool | None = None

    def read(self, value: Any) -> Any | None:
        """Returns the field's value, or None where it cannot be read."""
        if self.kind == "bool":
            label = read_bool(value)
            return None if label is self.alone and isinstance(value, str) and len(_WORD.findall(value)) > 1 else label
        if self.kind == "numbers":
            return read_numbers(value)
        if self.kind == "probability":
            return read_probability(value)
        if self.kind == "texts":
            # Servers without schemas may send more: what goes beyond what was asked for is left out.
            entries = read_texts(value)
            return None if entries is None else tuple(entry[: self.entry_limit] for entry in entries[: self.limit])
        if isinstance(value, float) and value.is_integer():
            value = int(value)
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
        if self.kind == "texts":
            entry = {"enum": list(self.options)} if self.options else {"minLength": 1, "maxLength": self.entry_limit}
            return {"type": "array", "items": {"type": "string", **entry}, "maxItems": self.limit}
        if self.kind == "enum":
            if all(type(option) is int for option in self.options):
                return {"type": "integer", "enum": list(self.options)}
            return {"type": "string", "enum": [str(option) for option in self.options]}
        if self.kind == "probability":
            return {
                "type": "object",
                "properties": {"noul": {"enum": list(STATED_STEPS)}},
                "required": ["noul"],
                "additionalProperties": False,
            }
        # A blank is no text (it would be asked for again), so that the smallest models may not write one.
        return {"type": "string", "minLength": 1, "maxLength": self.limit}

    def describe(self) -> str:
        """Returns the field's line in the prompt."""
        form = {
            "bool": "true or false",
            "text": f"text of at most {self.limit} characters",
            "texts": f"list of at most {self.limit} texts of at most {self.entry_limit} characters each",
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
    if get_origin(annotation) is list and _is_text(get_args(annotation)[0]):
        return "texts", ()
    if isinstance(annotation, type) and any(base.__name__ == "Noul" for base in annotation.__mro__):
        return "probability", ()
    raise DeclarationError(
        f"output field {name!r}: type {annotation!r} is not read here; use bool, str, Literal, list[int], list[str] "
        "or Noul"
    )


def _is_text(annotation: Any) -> bool:
    return annotation is str or (get_origin(annotation) is Annotated and get_args(annotation)[0] is str)


def _max_length(metadata: Sequence[Any], default: int) -> int:
    """Returns the first `max_length` among pydantic constraints, or inside a `Field(...)` that holds them."""
    for item in metadata:
        for constraint in (item, *getattr(item, "metadata", ())):
            if (limit := getattr(constraint, "max_length", None)) is not None:
                return int(limit)
    return default


def _entry_limit(annotation: Any) -> int:
    (entry,) = get_args(annotation) or (str,)
    return _max_length(get_args(entry)[1:], ENTRY_LIMIT) if get_origin(entry) is Annotated else ENTRY_LIMIT


@functools.lru_cache(maxsize=512)
def field_specs(signature: Any) -> tuple[FieldSpec, ...]:
    """Returns the specifications of a signature's output fields, in order.

    Limits come from `with_updated_fields(name, limit=N)`, else from `OutputField(..., max_length=N)` (characters of a
    text, entries of a list), those of a list's entries from `list[Annotated[str, Field(max_length=N)]]`, other
    spellings of a `Literal`'s options from `with_updated_fields(name, aliases={spelling: option})`, a label that must
    stand alone from `Annotated[bool, Alone(True)]`. A list of numbers is never asked for again: citing nothing is an
    answer. A list of texts may be empty, but it must be there.

    Raises:
        DeclarationError: A field has a type that this library does not read.
    """
    specs = []
    for name, info in signature.output_fields.items():
        extra = info.json_schema_extra or {}
        kind, options = _kind_of(name, info.annotation)
        default = ITEM_LIMIT if kind in ("numbers", "texts") else TEXT_LIMIT
        limit = int(extra.get("limit") or _max_length(info.metadata, default))
        desc = extra.get("desc", "")
        desc = "" if desc == f"${{{name}}}" else desc
        specs.append(
            FieldSpec(
                name,
                kind,
                desc,
                limit,
                options,
                kind != "numbers",
                tuple(extra.get("aliases", {}).items()),
                _entry_limit(info.annotation) if kind == "texts" else ENTRY_LIMIT,
                next((mark.value for mark in info.metadata if isinstance(mark, Alone)), None),
            )
        )
    return tuple(specs)


def restrict(specs: Sequence[FieldSpec], choices: Mapping[str, Sequence[Any]]) -> tuple[FieldSpec, ...]:
    """Narrows list fields to what exists in this call, such as passage numbers, where the server enforces schemas."""
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
