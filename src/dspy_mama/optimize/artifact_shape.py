"""The shape of a saved program's file: a damaged one is refused where it is read, with the place that is damaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from dspy_mama.lm.hosts import Host

_SAYS: Final = {"missing": "is missing", "extra_forbidden": "is not known"}


class FieldPart(TypedDict):
    """A field of a signature."""

    prefix: str
    description: str


class SignaturePart(TypedDict):
    """Instructions and fields of a predictor."""

    instructions: str
    fields: list[FieldPart]


class PredictorPart(TypedDict):
    """A predictor: its prompt, demonstrations, and cuts of its decisions."""

    signature: SignaturePart
    demos: list[dict[str, Any]]
    fields: NotRequired[dict[str, Any]]


class LMPart(TypedDict):
    """The LM of a role."""

    model: str
    host: Host


class DemonstrationsPart(TypedDict):
    """Demonstrations by predictor, whether they are in the file, and whether that puts texts of pairs into it."""

    count: dict[str, int]
    kept: bool
    texts: bool


class HashesPart(TypedDict):
    """Hashes of prompts as sent, of those before compiling, of the criteria, and of the whole file."""

    prompts: dict[str, str]
    uncompiled: dict[str, str]
    criteria: str
    content: str


class ArtifactFile(TypedDict):
    """A saved program; `thresholds` and `settings` are checked by those who know them."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    kind: str
    format: int
    versions: dict[str, str]
    settings: dict[str, dict[str, Any]]
    thresholds: dict[str, Any]
    lms: dict[str, LMPart]
    demonstrations: DemonstrationsPart
    origin: dict[str, Any]
    hashes: HashesPart
    state: dict[str, PredictorPart]


_SHAPE: Final = TypeAdapter(ArtifactFile)


def damage_of(saved: Mapping[str, Any]) -> str | None:
    """Returns what is damaged in a file, such as `state.initial.assess.demos: ...`; None where it is whole."""
    try:
        _SHAPE.validate_python(saved)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{place} {_SAYS.get(first['type'], 'is of another kind: ' + first['msg'])}"
    return None
