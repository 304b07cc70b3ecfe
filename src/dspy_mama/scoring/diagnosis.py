"""When a diagnosis counts as right: the paper's thresholds on a record's grades."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from dspy_mama.core.disease_knowledge import DIMENSIONS, KNOWLEDGE, Dimension

Record = Mapping[str, Any]

Unit = Literal["most_likely", "possible", "tests"] | Dimension
UNITS: Final[tuple[Unit, ...]] = ("most_likely", "possible", "tests")
"""What is judged of a case; tests at the first visit alone."""

SIDES: Final[tuple[Unit, ...]] = tuple(DIMENSIONS)
"""What is judged of a disease that a method was asked about."""

RIGHT_FROM: Final[Mapping[Unit, int]] = {"most_likely": 5, "possible": 5, "tests": 4, **dict.fromkeys(DIMENSIONS, 4)}
"""Level from which an answer counts as right: the true diagnosis itself and helpful tests, as in paper C; of
knowledge what is right with gaps that hardly matter, by this project's choice."""

METHODS: Final = ("mac", "direct", "cot", "self_consistency", "self_refine")


def joined(record: Record) -> list[str]:
    """Returns the diagnoses that `possible` is judged on: the most likely one and the others together."""
    final = record["final"]
    names = [final["most_likely"], *final["possible"]]
    return list(dict.fromkeys(name for name in names if name))


def units_of(record: Record) -> tuple[Unit, ...]:
    """Returns what is judged of a record."""
    return units_at(record["stage"])


def units_at(stage: str) -> tuple[Unit, ...]:
    """Returns what is judged at a stage."""
    return SIDES if stage == KNOWLEDGE else UNITS if stage == "primary" else UNITS[:2]


def outcome_of(record: Record, unit: Unit) -> str:
    """Returns `scored`, or why a unit has no level.

    `no_truth` where the true diagnosis is not known and `not_graded` where no grader was asked are no faults; the
    other kinds are those of every outcome.
    """
    if not record["gold"].get("diagnosis"):
        return "no_truth"
    said = record["answers"][unit] if record["stage"] == KNOWLEDGE else record["final"]
    if said["outcome"] != "scored":
        return str(said["outcome"])
    grade = (record.get("grades") or {}).get(unit)
    return "not_graded" if grade is None else str(grade["outcome"])


def score_of(record: Record, unit: Unit) -> int | None:
    """Returns a unit's level, or None where it has none."""
    if outcome_of(record, unit) != "scored":
        return None
    return int(record["grades"][unit]["score"])


def is_right(record: Record, unit: Unit) -> bool | None:
    """Tells whether a unit's level reaches its threshold; None where it has none, which is never wrong."""
    score = score_of(record, unit)
    return None if score is None else score >= RIGHT_FROM[unit]


def is_matched(record: Record, unit: Unit) -> bool | None:
    """Tells whether the matcher of names finds the truth among a unit's diagnoses; None where it was not asked."""
    found = (record.get("match") or {}).get(unit)
    return None if found is None else found["kind"] != "none"


def self_graded(record: Record) -> bool:
    """Tells whether the grader is the model that diagnosed: models favour their own words (Panickssery et al. 2024)."""
    models = record.get("models") or {}
    own = models.get("grader")
    return own is not None and own in {model for role, model in models.items() if role != "grader"}
