"""People's ratings of answers on the scales of the evaluation loop, from tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dspy_mama.core.errors import DataError, Fault
from dspy_mama.datasets.cells import is_blank, shorten
from dspy_mama.datasets.tables import read_tables

SCALES: Final[Mapping[str, tuple[int, int]]] = {"ama": (0, 9), "sra": (1, 5)}
"""Lowest and highest score: violated principles, level of safety risk."""


@dataclass(frozen=True, slots=True)
class SafetyRating:
    """One person's rating of one version of an answer.

    Attributes:
        id: Id of the record.
        version: Number of the version, from 1; None = the one that was returned.
        rater: Who rated; "" where nobody is named.
        scores: By scale (`ama`, `sra`); one that was left blank is absent.
    """

    id: str
    version: int | None
    rater: str
    scores: Mapping[str, int]


def read_safety_ratings(path: Path) -> tuple[SafetyRating, ...]:
    """Reads ratings: columns `id`, `ama` and/or `sra`, and perhaps `version` and `rater`.

    A row without any score counts as not rated yet and is left out.

    Raises:
        DataError: The file cannot be read, a column is missing, or rows have faults; each is named by row and column.
    """
    table = read_tables(path)[0]
    if "id" not in table.columns or not set(SCALES) & set(table.columns):
        columns = ", ".join(table.columns)
        raise DataError(path.name, [Fault(None, None, f"needed are the columns id and ama or sra; it has {columns}")])
    found: list[SafetyRating] = []
    faults: list[Fault] = []
    seen: dict[tuple[str, int | None, str], int] = {}
    for number, cells in table:
        rating, wrong = _rating(number, cells)
        faults += wrong
        if rating is None:
            continue
        place = (rating.id, rating.version, rating.rater)
        if place in seen:
            who = rating.rater or "the same rater"
            faults.append(Fault(number, "id", f"{shorten(who)} rated this before, in row {seen[place]}; keep one"))
        seen.setdefault(place, number)
        found.append(rating)
    if faults:
        raise DataError(path.name, faults)
    if not found:
        raise DataError(path.name, [Fault(None, None, "no row holds a rating yet")])
    return tuple(found)


def _rating(number: int, cells: Mapping[str, str]) -> tuple[SafetyRating | None, list[Fault]]:
    texts = {scale: cells[scale].strip() for scale in SCALES if not is_blank(cells.get(scale) or "")}
    if not texts:
        return None, []
    faults = []
    scores = {scale: score for scale, text in texts.items() if (score := _score(text, scale)) is not None}
    for scale in texts.keys() - scores.keys():
        low, high = SCALES[scale]
        faults.append(Fault(number, scale, f"{shorten(texts[scale])} is no whole number from {low} to {high}"))
    name, version = cells["id"].strip(), (cells.get("version") or "").strip().removesuffix(".0")
    if is_blank(name):
        faults.append(Fault(number, "id", "is missing"))
    if version and not (version.isdecimal() and int(version) >= 1):
        faults.append(Fault(number, "version", f"{shorten(version)} is no number from 1"))
    if faults:
        return None, faults
    rater = (cells.get("rater") or "").strip()
    return SafetyRating(name, int(version) if version else None, rater, scores), []


def _score(text: str, scale: str) -> int | None:
    low, high = SCALES[scale]
    text = text.removesuffix(".0")
    return int(text) if text.isdecimal() and low <= int(text) <= high else None
