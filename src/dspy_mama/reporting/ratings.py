"""Ratings of severity as they come back from clinicians: read, checked row by row, summed up with their agreement."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DOMAINS, DeclarationError
from dspy_mama.core.errors import DataError, Fault
from dspy_mama.datasets.cells import is_blank, shorten
from dspy_mama.datasets.tables import Table, read_tables
from dspy_mama.reporting.errors import ErrorCase
from dspy_mama.reporting.severity_sheet import ASKED, SUGGESTED
from dspy_mama.stats import cohen_kappa, krippendorff_alpha
from dspy_mama.systems.audit import SEVERITY_SCALE

_LEVEL: Final = re.compile(r"([1-5])(?:[.,]0+)?")


@dataclass(frozen=True, slots=True)
class Rating:
    """One clinician's rating of one error.

    Attributes:
        item: Name of the error.
        rater: Who rated.
        level: 1 (minimal) to 5 (severe).
        explanation: Why.
    """

    item: str
    rater: str
    level: int
    explanation: str


@dataclass(frozen=True, slots=True)
class Ratings:
    """What the sheets hold.

    Attributes:
        ratings: All ratings, file by file.
        suggestions: The LM's level by item, where a sheet holds one.
        blank: Rows without a rating, over all files.
    """

    ratings: tuple[Rating, ...]
    suggestions: Mapping[str, int]
    blank: int


def read_ratings(paths: Sequence[str | Path], cases: Sequence[ErrorCase]) -> Ratings:
    """Reads sheets that were filled in, one or more raters in each.

    A row without severity and explanation counts as not rated.

    Args:
        paths: csv or xlsx files as `write_sheet` makes them; further columns and another order do no harm.
        cases: The errors that the sheets are about.

    Raises:
        DataError: A file cannot be read or rows have faults; each is named by file, row and column.
        DeclarationError: No row is rated.
    """
    known = {case.item for case in cases}
    faults: list[tuple[Path, Fault]] = []
    ratings: list[Rating] = []
    suggestions: dict[str, int] = {}
    places: dict[tuple[str, str], str] = {}
    blank = 0
    for path in map(Path, paths):
        table = _sheet_of(path)
        for number, cells in table:
            found, wrong = _read_row(number, cells, table, known)
            faults += [(path, fault) for fault in wrong]
            if (level := _level(cells.get(SUGGESTED[0], ""))) is not None:
                suggestions[cells["item"].strip()] = level
            if found is None:
                blank += not wrong
                continue
            before = places.get((found.item, found.rater))
            if before is not None:
                reason = f"{found.rater} has rated {found.item} before, in {before}; keep one of the two"
                faults.append((path, Fault(number, "rater", reason)))
            places[found.item, found.rater] = f"{path.name} row {number}"
            ratings.append(found)
    if faults:
        names = dict.fromkeys(str(path) for path, _ in faults)
        several = len(names) > 1
        raise DataError(
            ", ".join(names), [Fault(f.row, f.field, f"{p.name}: {f.reason}") if several else f for p, f in faults]
        )
    if not ratings:
        raise DeclarationError(f"{', '.join(str(p) for p in paths)}: no row is rated; severity and rater are all blank")
    return Ratings(tuple(ratings), suggestions, blank)


def _sheet_of(path: Path) -> Table:
    needed = ("item", *ASKED)
    tables = read_tables(path)
    for table in tables:
        if set(needed) <= set(table.columns):
            return table
    missing = [name for name in needed if name not in tables[0].columns]
    raise DataError(
        str(path), [Fault(None, name, "the column is missing; give a sheet as --sheet wrote it") for name in missing]
    )


def _level(text: str) -> int | None:
    plain = unicodedata.normalize("NFKC", text).strip().lstrip("'")
    found = _LEVEL.fullmatch(plain)
    return int(found[1]) if found else None


def _read_row(
    number: int, cells: Mapping[str, str], table: Table, known: set[str]
) -> tuple[Rating | None, list[Fault]]:
    item, severity, explanation, rater = (cells[name].strip() for name in ("item", *ASKED))
    marks = [
        Fault(number, name, table.marks[number, name]) for name in ("item", *ASKED) if (number, name) in table.marks
    ]
    if marks:
        return None, marks
    if is_blank(severity) and is_blank(explanation):
        return None, []
    faults = []
    if item not in known:
        faults.append(Fault(number, "item", f"{shorten(item)} is no error of these runs; name the runs of the sheet"))
    level = _level(severity)
    if is_blank(severity):
        faults.append(Fault(number, "severity", "is missing beside an explanation; write 1, 2, 3, 4 or 5"))
    elif level is None:
        faults.append(Fault(number, "severity", f"{shorten(severity)} is no level; write 1, 2, 3, 4 or 5"))
    if is_blank(explanation):
        faults.append(Fault(number, "explanation", "is missing; say in a few words why it is of this level"))
    if is_blank(rater):
        faults.append(Fault(number, "rater", "is missing; write the rater's name or number"))
    if faults or level is None:
        return None, faults
    return Rating(item, unicodedata.normalize("NFKC", rater), level, explanation), []


def summarise_ratings(found: Ratings, cases: Sequence[ErrorCase]) -> dict[str, Any]:
    """Sums ratings up.

    Args:
        found: What the sheets hold.
        cases: The errors that they are about.

    Returns:
        Plain data: `raters`; `n` (errors rated), `of` (errors), `ratings`; `groups`: per domain and kind of error `n`,
        `ratings`, `mean` and `sd` over errors (each by the mean of its raters) and `levels` (how often each was
        given); `agreement`: Krippendorff's alpha (ordinal) over all raters, and per pair of raters Cohen's kappa with
        quadratic weights and the share of equal levels; `suggestion`: how the LM's levels compare with the
        clinicians' means, or None; `items`. What is undefined is null.
    """
    raters = sorted({rating.rater for rating in found.ratings})
    by_item: dict[str, list[Rating]] = {}
    for rating in found.ratings:
        by_item.setdefault(rating.item, []).append(rating)
    rated = [case for case in cases if case.item in by_item]
    groups: dict[str, Any] = {}
    for case in sorted(rated, key=lambda case: (DOMAINS.index(case.domain), case.kind)):
        groups.setdefault(f"{case.domain}/{case.kind}", []).append(by_item[case.item])
    return {
        "raters": raters,
        "n": len(rated),
        "of": len(cases),
        "ratings": len(found.ratings),
        "blank_rows": found.blank,
        "groups": {name: _group(group) for name, group in groups.items()},
        "agreement": _agreement(_table(by_item, raters), raters),
        "suggestion": _suggestion(by_item, found.suggestions),
        "items": [_item(case, by_item[case.item], found.suggestions.get(case.item)) for case in rated],
    }


def _mean(ratings: Sequence[Rating]) -> float:
    return float(np.mean([rating.level for rating in ratings]))


def _group(items: Sequence[Sequence[Rating]]) -> dict[str, Any]:
    means = [_mean(ratings) for ratings in items]
    levels = Counter(rating.level for ratings in items for rating in ratings)
    return {
        "n": len(items),
        "ratings": levels.total(),
        "mean": float(np.mean(means)),
        "sd": float(np.std(means, ddof=1)) if len(means) > 1 else None,
        "levels": {str(level): levels[level] for level in SEVERITY_SCALE},
    }


def _item(case: ErrorCase, ratings: Sequence[Rating], suggested: int | None) -> dict[str, Any]:
    return {
        "item": case.item,
        "id": str(case.record["id"]),
        "domain": case.domain,
        "error": case.kind,
        "runs": list(case.runs),
        "mean": _mean(ratings),
        "n": len(ratings),
        "ratings": {rating.rater: rating.level for rating in ratings},
        "explanations": {rating.rater: rating.explanation for rating in ratings},
        "suggested": suggested,
    }


def _table(by_item: Mapping[str, Sequence[Rating]], raters: Sequence[str]) -> npt.NDArray[np.int64]:
    """Returns levels from 0, shape (items, raters), -1 where a rater did not rate."""
    table = np.full((len(by_item), len(raters)), -1, dtype=np.int64)
    for row, ratings in enumerate(by_item.values()):
        for rating in ratings:
            table[row, raters.index(rating.rater)] = rating.level - 1
    return table


def _agreement(table: npt.NDArray[np.int64], raters: Sequence[str]) -> dict[str, Any] | None:
    if len(raters) < 2:
        return None
    pairs = []
    for a, b in combinations(range(len(raters)), 2):
        both = (table[:, a] >= 0) & (table[:, b] >= 0)
        kappa = cohen_kappa(table[:, a], table[:, b], quadratic=True, categories=len(SEVERITY_SCALE))
        equal = float((table[both, a] == table[both, b]).mean()) if both.any() else None
        pairs.append({"raters": [raters[a], raters[b]], "n": int(both.sum()), "weighted_kappa": kappa, "equal": equal})
    several = int(((table >= 0).sum(axis=1) >= 2).sum())
    return {"n": several, "krippendorff_alpha": krippendorff_alpha(table, "ordinal"), "pairs": pairs}


def _suggestion(by_item: Mapping[str, Sequence[Rating]], suggestions: Mapping[str, int]) -> dict[str, Any] | None:
    """Compares the LM's levels with the clinicians': mean difference, and kappa with the nearest whole level."""
    both = [(suggestions[item], _mean(ratings)) for item, ratings in by_item.items() if item in suggestions]
    if not both:
        return None
    said, mean = np.array([level for level, _ in both]), np.array([value for _, value in both])
    nearest = np.floor(mean + 0.5).astype(np.int64)
    kappa = cohen_kappa(said - 1, nearest - 1, quadratic=True, categories=len(SEVERITY_SCALE))
    return {"n": len(both), "mean_difference": float((said - mean).mean()), "weighted_kappa": kappa}
