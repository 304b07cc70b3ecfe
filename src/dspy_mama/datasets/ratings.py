"""People's ratings of diagnoses, and dictionaries of synonyms, from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.disease_knowledge import DIMENSIONS
from dspy_mama.core.errors import DataError, Fault
from dspy_mama.datasets.cells import is_blank, shorten
from dspy_mama.datasets.tables import Table, read_tables

LEVELS: Final[Mapping[str, tuple[int, ...]]] = {
    "most_likely": (5, 4, 3, 2, 0),
    "possible": (5, 4, 3, 2, 0),
    "tests": (5, 4, 3, 2, 1),
    **dict.fromkeys(DIMENSIONS, (5, 4, 3, 2, 1)),
}
"""Levels that a unit may have."""


@dataclass(frozen=True, slots=True)
class CaseRating:
    """One person's rating of one answer.

    Attributes:
        id: Id of the record, such as `mac-17/primary/mac`.
        unit: `most_likely`, `possible`, `tests`, or a dimension of knowledge.
        score: Level on the unit's scale.
        rater: Who rated.
        repeat: 0-based repeat of the record.
    """

    id: str
    unit: str
    score: int
    rater: str
    repeat: int = 0


def read_case_ratings(path: Path) -> tuple[CaseRating, ...]:
    """Reads ratings: columns `id`, `unit`, `score`, `rater`, and `repeat` where records are repeated.

    A row without a score counts as not rated yet and is left out.

    Raises:
        DataError: The file cannot be read, a column is missing, or rows have faults; each is named by row and column.
    """
    table = _with_columns(path, ("id", "unit", "score", "rater"))
    found: list[CaseRating] = []
    faults: list[Fault] = []
    seen: dict[tuple[Any, ...], int] = {}
    for number, cells in table:
        if is_blank(cells["score"]):
            continue
        rating, wrong = _rating(number, cells)
        faults += wrong
        if rating is None:
            continue
        place = (rating.id, rating.unit, rating.rater, rating.repeat)
        if place in seen:
            reason = f"{shorten(rating.rater)} rated this before, in row {seen[place]}; keep one of the two"
            faults.append(Fault(number, "id", reason))
        seen.setdefault(place, number)
        found.append(rating)
    if faults:
        raise DataError(path.name, faults)
    return tuple(found)


def _rating(number: int, cells: Mapping[str, str]) -> tuple[CaseRating | None, list[Fault]]:
    name, unit, score, rater = (cells[column].strip() for column in ("id", "unit", "score", "rater"))
    repeat = (cells.get("repeat") or "").strip() or "0"
    faults = [Fault(number, c, "is missing") for c, v in (("id", name), ("rater", rater)) if is_blank(v)]
    if unit not in LEVELS:
        return None, [*faults, Fault(number, "unit", f"{shorten(unit)} is none of {', '.join(LEVELS)}")]
    allowed = {str(level): level for level in LEVELS[unit]}
    level = allowed.get(score.removesuffix(".0"))
    if level is None:
        levels = ", ".join(allowed)
        return None, [*faults, Fault(number, "score", f"{shorten(score)} is no level of {unit}; write one of {levels}")]
    if not repeat.isdecimal():
        return None, [*faults, Fault(number, "repeat", f"{shorten(repeat)} is no number from 0")]
    return (None if faults else CaseRating(name, unit, level, rater, int(repeat))), faults


def read_synonyms(path: Path) -> list[tuple[str, str]]:
    """Reads a dictionary of diseases: columns `name` and `synonym`.

    Raises:
        DataError: The file cannot be read, a column is missing, or a row lacks one of the two.
    """
    rows = list(_with_columns(path, ("name", "synonym")))
    faults = [
        Fault(number, column, "is missing")
        for number, cells in rows
        for column in ("name", "synonym")
        if is_blank(cells[column])
    ]
    if faults:
        raise DataError(path.name, faults)
    return [(cells["name"], cells["synonym"]) for _, cells in rows]


def _with_columns(path: Path, needed: Sequence[str]) -> Table:
    tables = read_tables(path)
    for table in tables:
        if set(needed) <= set(table.columns):
            return table
    missing = [name for name in needed if name not in tables[0].columns]
    columns = ", ".join(needed)
    raise DataError(path.name, [Fault(None, name, f"the column is missing; needed are {columns}") for name in missing])
