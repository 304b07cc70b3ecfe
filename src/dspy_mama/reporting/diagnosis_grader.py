"""How far the grader can be trusted: its two orders, the matcher of names, and people's ratings."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.datasets.ratings import LEVELS, CaseRating
from dspy_mama.scoring.diagnosis import (
    SIDES,
    UNITS,
    Record,
    Unit,
    is_matched,
    is_right,
    score_of,
    self_graded,
    units_of,
)
from dspy_mama.stats import cohen_kappa, krippendorff_alpha

_RANKS: Final = {unit: {level: rank for rank, level in enumerate(sorted(levels))} for unit, levels in LEVELS.items()}
"""Place of each level on its scale: the gap between 0 and 2 is no wider than any other."""


def grader_quality(records: Sequence[Record]) -> dict[str, Any]:
    """Returns what the records tell of their grader.

    Returns:
        Per unit `n` (graded), `orders` (answers read in both orders, with the share of equal levels, the mean of
        answer-first minus truth-first, and Cohen's kappa with quadratic weights), `matcher` (judged by both, share of
        equal judgements of right or wrong, who alone says right); `contradictions` (possible diagnoses graded below
        the most likely one, which is among them), `self_graded` (records whose grader is their own model) and `of`.
    """
    graded = [record for record in records if record.get("grades")]
    visits = [record for record in graded if "possible" in units_of(record)]
    pairs = [(score_of(r, "most_likely"), score_of(r, "possible")) for r in visits]
    return {
        "units": {unit: _unit([r for r in graded if unit in units_of(r)], unit) for unit in _units(graded)},
        "contradictions": sum(a is not None and b is not None and b < a for a, b in pairs),
        "self_graded": sum(map(self_graded, graded)),
        "of": len(graded),
    }


def _units(records: Sequence[Record]) -> list[Unit]:
    """Returns what is judged of cases, and of diseases where there are any."""
    return list(dict.fromkeys((*UNITS, *(unit for record in records for unit in units_of(record)))))


def _unit(graded: Sequence[Record], unit: Unit) -> dict[str, Any]:
    scored = [record for record in graded if score_of(record, unit) is not None]
    return {"n": len(scored), "orders": _orders(scored, unit), "matcher": _matcher(scored, unit)}


def _orders(records: Sequence[Record], unit: Unit) -> dict[str, Any] | None:
    levels = []
    for record in records:
        own: dict[str, list[int]] = {"truth_first": [], "answer_first": []}
        for reading in record["grades"][unit]["readings"]:
            if reading["score"] is not None and record["grades"][unit]["by"] == "grader":
                own[reading["order"]].append(reading["score"])
        if all(own.values()):
            levels.append((median_low(own["truth_first"]), median_low(own["answer_first"])))
    if not levels:
        return None
    first, second = (np.array(column, dtype=np.float64) for column in zip(*levels, strict=True))
    return {
        "n": len(levels),
        "agreement": float((first == second).mean()),
        "shift": float((second - first).mean()),
        "kappa": cohen_kappa(_ranks(first, unit), _ranks(second, unit), quadratic=True),
    }


def _ranks(levels: npt.NDArray[np.float64], unit: str) -> npt.NDArray[np.int64]:
    return np.array([_RANKS[unit][int(level)] for level in levels], dtype=np.int64)


def _matcher(records: Sequence[Record], unit: Unit) -> dict[str, Any] | None:
    judged = [(is_right(r, unit), is_matched(r, unit)) for r in records]
    both = [(bool(grader), bool(matcher)) for grader, matcher in judged if grader is not None and matcher is not None]
    if not both:
        return None
    return {
        "n": len(both),
        "agreement": sum(one == two for one, two in both) / len(both),
        "only_grader": sum(one and not two for one, two in both),
        "only_matcher": sum(two and not one for one, two in both),
    }


def people_beside_grader(records: Sequence[Record], ratings: Sequence[CaseRating]) -> dict[str, Any] | None:
    """Compares people's ratings with the grader's levels.

    Several raters of one answer come to their lower median, as the gradings do.

    Returns:
        None without ratings; else `raters`, `unknown` (ratings of records that the run does not hold) and per unit
        `n`, the share of `equal` levels, of equal judgements of `right`, Cohen's `kappa` with quadratic weights, and
        Krippendorff's `alpha` (ordinal) among the raters. What is undefined is null.
    """
    if not ratings:
        return None
    known = {(record["id"], int(record.get("repeat") or 0)): record for record in records}
    unknown = sum((rating.id, rating.repeat) not in known for rating in ratings)
    units = {unit: _people(known, [r for r in ratings if r.unit == unit], unit) for unit in (*UNITS, *SIDES)}
    raters = sorted({rating.rater for rating in ratings})
    return {"raters": raters, "unknown": unknown, "units": {unit: found for unit, found in units.items() if found}}


def _people(known: dict[tuple[str, int], Record], ratings: Sequence[CaseRating], unit: Unit) -> dict[str, Any] | None:
    from dspy_mama.scoring.diagnosis import RIGHT_FROM

    by_answer: dict[tuple[str, int], list[CaseRating]] = {}
    for rating in ratings:
        by_answer.setdefault((rating.id, rating.repeat), []).append(rating)
    pairs = [
        (median_low([rating.score for rating in found]), score)
        for key, found in by_answer.items()
        if key in known and unit in units_of(known[key]) and (score := score_of(known[key], unit)) is not None
    ]
    if not pairs:
        return None
    people, grader = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    threshold = RIGHT_FROM[unit]
    return {
        "n": len(pairs),
        "equal": float((people == grader).mean()),
        "right": float(((people >= threshold) == (grader >= threshold)).mean()),
        "kappa": cohen_kappa(_ranks(people, unit), _ranks(grader, unit), quadratic=True),
        "alpha": _alpha(by_answer, unit),
    }


def _alpha(by_answer: dict[tuple[str, int], list[CaseRating]], unit: Unit) -> float | None:
    raters = sorted({rating.rater for found in by_answer.values() for rating in found})
    if len(raters) < 2:
        return None
    table = np.full((len(by_answer), len(raters)), -1, dtype=np.int64)
    for row, found in enumerate(by_answer.values()):
        for rating in found:
            table[row, raters.index(rating.rater)] = _RANKS[unit][rating.score]
    return krippendorff_alpha(table, "ordinal")
