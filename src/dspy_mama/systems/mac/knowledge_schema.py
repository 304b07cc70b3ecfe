"""What the disease-knowledge task gives: an entry for each side of a disease, with the drafts behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dspy_mama.core.disease_knowledge import Dimension
from dspy_mama.core.outcomes import Outcome
from dspy_mama.lm.usage import CallUsage


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry on the way to the one that stands.

    Attributes:
        by: `Doctor N`, or `candidate N` of a single model that refines its answer.
        outcome: The text, or why there is none.
        score: The critic's score, where one was given.
        critique: What the critic said, or None.
        kept: Whether it took the place of the one before; None where that is no question.
        usage: What writing it cost.
    """

    by: str
    outcome: Outcome[str]
    score: int | None = None
    critique: str | None = None
    kept: bool | None = None
    usage: CallUsage = field(default_factory=CallUsage)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is said of one side of a disease.

    Attributes:
        outcome: The text, or why there is none.
        by: `answer`, `refined`, `supervisor` or `concluder`; None where nobody could give it.
        disagreement: What the doctors' entries differ in, or None.
        drafts: What it was made of; empty for a single answer.
        usage: What it cost in all, drafts included.
    """

    outcome: Outcome[str]
    by: str | None = None
    disagreement: str | None = None
    drafts: tuple[Draft, ...] = ()
    usage: CallUsage = field(default_factory=CallUsage)


@dataclass(frozen=True, slots=True)
class KnowledgeAnswer:
    """What a method says of a disease.

    Attributes:
        disease: Name of the disease.
        entries: Entry per dimension.
        usage: What was spent by role.
        usage_by_doctor: What each doctor of a panel spent.
        models: Model by role, as the server resolved it.
        method: `mac` for doctors under a supervisor, else the name of a baseline.
        notes: What did not go as planned, one line each.
    """

    disease: str
    entries: Mapping[Dimension, Entry]
    usage: Mapping[str, CallUsage] = field(default_factory=dict)
    usage_by_doctor: Mapping[str, CallUsage] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    method: str = "direct"
    notes: tuple[str, ...] = ()

    @property
    def answers(self) -> dict[Dimension, Outcome[str]]:
        """Text per dimension, or why there is none."""
        return {name: entry.outcome for name, entry in self.entries.items()}
