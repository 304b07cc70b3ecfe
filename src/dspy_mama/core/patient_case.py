"""A patient as a diagnosis panel sees one: what is known at the first visit, and what further tests added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from dspy_mama.core.errors import DeclarationError

Stage = Literal["primary", "follow_up"]
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
"""The first visit, and the visit after further tests (paper C, Clinical cases)."""

FURTHER_SECTION: Final = "Further Diagnostic Tests"
"""The section that only the follow-up has."""


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True)
class PatientCase:
    """One patient.

    Attributes:
        id: Unique within its data set.
        sections: Name to text, as known at the first visit; untrusted. A text may be empty.
        further: Sections that the follow-up adds.
        diagnosis: The true diagnosis, or None where it is not known. Never shown to the panel.
        group: Disease group, or None.
        source: Name of the data set.
        notices: What a reader should know of the data behind it, one line each.
        extra: Columns without a meaning to the panel, such as the reference of the case report.
    """

    id: str
    sections: Mapping[str, str]
    further: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    diagnosis: str | None = None
    group: str | None = None
    source: str = ""
    notices: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def known(self, stage: Stage) -> dict[str, str]:
        """Returns the sections of a stage."""
        return {**self.sections, **self.further} if stage == "follow_up" else dict(self.sections)

    def text(self, stage: Stage) -> str:
        """Returns the presentation of a stage as it is shown; empty sections are left out."""
        parts = [(name, text.strip()) for name, text in self.known(stage).items() if text.strip()]
        return "\n\n".join(f"{name}: {text}" if name else text for name, text in parts)

    def missing(self, stage: Stage) -> tuple[str, ...]:
        """Returns the names of a stage's empty sections."""
        return tuple(name for name, text in self.known(stage).items() if not text.strip())

    def leaks(self, stage: Stage) -> bool:
        """Tells whether the diagnosis stands in a stage's text word for word, whatever its case and blanks."""
        return bool(self.diagnosis) and _plain(self.diagnosis or "") in _plain(self.text(stage))


def as_case(value: PatientCase | str | Mapping[str, Any]) -> PatientCase:
    """Returns a case from what a caller has at hand.

    Args:
        value: A case, a text, or a mapping of section names to texts; the section "Further Diagnostic Tests" (in any
            spelling of case and underscores) belongs to the follow-up.

    Raises:
        DeclarationError: It is none of these, or it holds no text.
    """
    if isinstance(value, PatientCase):
        case = value
    elif isinstance(value, str):
        case = PatientCase("case", {"": value})
    elif isinstance(value, Mapping):
        case = _from_mapping(value)
    else:
        raise DeclarationError(
            f"case: {type(value).__name__} is no case; give a text, a mapping of sections to texts, or a PatientCase"
        )
    if not case.text("follow_up"):
        raise DeclarationError("case: holds no text")
    return case


def _from_mapping(value: Mapping[str, Any]) -> PatientCase:
    first: dict[str, str] = {}
    further: dict[str, str] = {}
    for name, text in value.items():
        if text is not None and (isinstance(text, bool) or not isinstance(text, (str, int, float))):
            raise DeclarationError(f"case: section {name!r} is {type(text).__name__}; give a text")
        late = " ".join(str(name).replace("_", " ").split()).casefold() == FURTHER_SECTION.casefold()
        (further if late else first)[str(name)] = "" if text is None else str(text)
    return PatientCase("case", first, further)
