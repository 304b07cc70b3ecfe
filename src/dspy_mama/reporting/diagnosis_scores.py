"""Accuracy of diagnoses by stage and method, with intervals, paired differences, tests of groups and agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core.confusion import EXCLUDED, FN, TP, Codes
from dspy_mama.core.disease_knowledge import KNOWLEDGE
from dspy_mama.core.patient_case import STAGES
from dspy_mama.scoring.diagnosis import METHODS, Record, Unit, is_matched, is_right, outcome_of, score_of, units_at
from dspy_mama.stats import (
    CountDraws,
    compare_groups,
    compare_proportions,
    estimate,
    holm,
    mcnemar_exact,
    measure_stability,
    pairwise_proportions,
    resample_counts,
    shared_pairs,
)
from dspy_mama.stats.intervals import Interval, Method

NO_FAULT: Final = ("no_truth", "not_graded")
"""Why a unit has no level although nothing went wrong."""

Place = tuple[str, str, Unit]
"""Stage, method and what is judged."""


class Grid:
    """Records by stage, method and what is judged, one row a case and repeat."""

    def __init__(self, records: Sequence[Record]) -> None:
        """Sorts the records.

        Args:
            records: Rows of `records.jsonl`.
        """
        found = {(r["case_id"], int(r.get("repeat") or 0), r["stage"], r["method"]): r for r in records}
        self.rows = list(dict.fromkeys((case, repeat) for case, repeat, _, _ in found))
        self.cases = list(dict.fromkeys(case for case, _ in self.rows))
        self.repeats = sorted({repeat for _, repeat in self.rows})
        self.methods = _in_order({r["method"] for r in records}, METHODS)
        self.stages = _in_order({r["stage"] for r in records}, (*STAGES, KNOWLEDGE))
        self._found = found

    @property
    def places(self) -> list[Place]:
        """Every stage, method and unit that is judged there."""
        return [(s, m, u) for s in self.stages for m in self.methods for u in units_at(s)]

    def at(self, place: Place, *, leaks: bool = True) -> list[Record | None]:
        """Returns the records of a place row by row; None where there is none, or where it leaks and may not."""
        stage, method, _ = place
        found = [self._found.get((*row, stage, method)) for row in self.rows]
        return [None if record is None or (record.get("leak") and not leaks) else record for record in found]

    def codes(self, places: Sequence[Place], *, leaks: bool = True) -> Codes:
        """Returns right as a true positive, wrong as a false negative, anything else as excluded."""
        columns = [[_code(record, place[2]) for record in self.at(place, leaks=leaks)] for place in places]
        return np.array(columns, dtype=np.int8).T.reshape(len(self.rows), len(places))

    def clusters(self) -> npt.NDArray[np.int64] | None:
        """Returns the case of each row where cases are repeated: their repeats are drawn together."""
        if len(self.repeats) < 2:
            return None
        place = {case: number for number, case in enumerate(self.cases)}
        return np.array([place[case] for case, _ in self.rows], dtype=np.int64)


def _in_order(found: set[str], order: Sequence[str]) -> list[str]:
    return [name for name in order if name in found] + sorted(found - set(order))


def _code(record: Record | None, unit: Unit) -> int:
    right = None if record is None else is_right(record, unit)
    return EXCLUDED if right is None else TP if right else FN


def share_right(counts: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Returns right over judged for every table of counts; NaN where nothing was judged."""
    right, wrong = counts[..., TP].astype(np.float64), counts[..., FN].astype(np.float64)
    out = np.full(right.shape, np.nan)
    np.divide(right, right + wrong, out=out, where=(right + wrong) > 0)
    return out


def bounds(interval: Interval | None) -> list[float] | None:
    """Returns an interval as plain data."""
    return None if interval is None else [interval.low, interval.high]


def score_places(grid: Grid, *, seed: int, resamples: int, method: Method) -> dict[str, Any]:
    """Returns `scores` and `without_leaks`: per stage, method and unit what was judged and how well.

    Args:
        grid: The records.
        seed: Seed of the resamples; both tables rest on the same ones.
        resamples: Resamples behind each interval.
        method: Kind of interval.
    """
    places = grid.places
    codes = np.concatenate([grid.codes(places), grid.codes(places, leaks=False)], axis=1)
    draws = resample_counts(codes, np.random.default_rng(seed), resamples, clusters=grid.clusters())
    out: dict[str, Any] = {}
    for part, (name, leaks) in enumerate((("scores", True), ("without_leaks", False))):
        table: dict[str, Any] = {}
        for column, place in enumerate(places):
            stage, judged, unit = place
            score = _score(grid, place, draws, part * len(places) + column, method, leaks)
            table.setdefault(stage, {}).setdefault(judged, {})[unit] = score
        out[name] = table
    return out


def _score(grid: Grid, place: Place, draws: CountDraws, column: int, method: Method, leaks: bool) -> dict[str, Any]:
    records = [record for record in grid.at(place, leaks=leaks) if record is not None]
    unit = place[2]
    found = estimate(draws, lambda counts: share_right(counts[..., column, :]), method=method)
    levels = [level for record in records if (level := score_of(record, unit)) is not None]
    right = int(draws.observed[column, TP])
    missing = Counter(outcome_of(record, unit) for record in records if is_right(record, unit) is None)
    faults = {kind: count for kind, count in missing.items() if kind not in NO_FAULT}
    matched = [same for record in records if (same := is_matched(record, unit)) is not None]
    return {
        "n": len(levels),
        "right": right,
        "value": found.value,
        "ci95": _certain(right, len(levels), grid) or bounds(found.interval),
        "mean_level": float(np.mean(levels)) if levels else None,
        "levels": {str(level): levels.count(level) for level in sorted(set(levels), reverse=True)},
        "unscored": {"n": sum(faults.values()), "of": len(records), "by_kind": faults},
        "not_judged": {kind: missing[kind] for kind in NO_FAULT if missing[kind]},
        "matched": {
            "n": len(matched),
            "right": sum(matched),
            "value": sum(matched) / len(matched) if matched else None,
        },
    }


def _certain(right: int, judged: int, grid: Grid) -> list[float] | None:
    """Returns Wilson's interval where all or none are right, on which every resample is the same; else None.

    Repeats of a case count as one: they are no further cases.
    """
    if not judged or 0 < right < judged:
        return None
    from scipy.stats import binomtest

    n = max(1, judged // len(grid.repeats))
    found = binomtest(n if right else 0, n).proportion_ci(0.95, method="wilson")
    return [float(found.low), float(found.high)]


def compare_methods(grid: Grid, *, seed: int, resamples: int, method: Method) -> list[dict[str, Any]]:
    """Returns paired differences of every two methods at each stage and unit, on the cases judged in both.

    McNemar's exact test counts each case once, by its first repeat; Holm adjusts over all pairs of a stage.
    """
    pairs = [((s, a, u), (s, b, u)) for s, a, u in grid.places for b in grid.methods if _before(grid, b, a)]
    rows: list[dict[str, Any]] = []
    first_repeat = np.array([repeat == grid.repeats[0] for _, repeat in grid.rows], dtype=bool)
    for one, two in pairs:
        left, right = shared_pairs(grid.codes([one]), grid.codes([two]))
        codes = np.concatenate([left, right], axis=1)
        draws = resample_counts(codes, np.random.default_rng(seed), resamples, clusters=grid.clusters())
        found = estimate(draws, lambda c: share_right(c[..., 0, :]) - share_right(c[..., 1, :]), method=method)
        both = first_repeat & (codes[:, 0] != EXCLUDED)
        only_one, only_two, p = mcnemar_exact(codes[both, 0] == TP, codes[both, 1] == TP)
        rows.append(
            {
                "stage": one[0], "unit": one[2], "first": one[1], "second": two[1], "n": int((codes[:, 0] >= 0).sum()),
                "value": found.value, "ci95": bounds(found.interval), "only_first": only_one, "only_second": only_two,
                "p": p if both.any() else None,
            }
        )  # fmt: skip
    for stage in grid.stages:
        tested = [row for row in rows if row["stage"] == stage and row["p"] is not None]
        for row, adjusted in zip(tested, holm([row["p"] for row in tested]) if tested else [], strict=True):
            row["p_holm"] = adjusted
    return [{"p_holm": None, **row} for row in rows]


def _before(grid: Grid, other: str, method: str) -> bool:
    """Whether a pair is listed as method minus other: the panel comes first, and each pair once."""
    return grid.methods.index(method) < grid.methods.index(other)


def differences_of_groups(grid: Grid) -> dict[str, Any]:
    """Returns the paper's tests: levels by Shapiro-Wilk, then ANOVA or Kruskal-Wallis; accuracy by chi-square.

    The tests take the methods as independent groups, as the paper does; Holm adjusts both kinds over the whole run.
    """
    out: dict[str, Any] = {}
    for stage, unit in dict.fromkeys((s, u) for s, _, u in grid.places):
        records = {m: [r for r in grid.at((stage, m, unit)) if r is not None] for m in grid.methods}
        levels = {m: [s for r in found if (s := score_of(r, unit)) is not None] for m, found in records.items()}
        rights = {m: [x for r in found if (x := is_right(r, unit)) is not None] for m, found in records.items()}
        counts = {m: (sum(values), len(values)) for m, values in rights.items()}
        out.setdefault(stage, {})[unit] = {
            "levels": asdict(compare_groups(levels)),
            "proportions": asdict(compare_proportions(counts)),
            "pairs": [{"first": a, "second": b, "p_holm": p} for (a, b), p in pairwise_proportions(counts).items()],
        }
    for kind in ("levels", "proportions"):
        tests = [found[kind] for stage in out.values() for found in stage.values() if found[kind]["p"] is not None]
        for test, adjusted in zip(tests, holm([t["p"] for t in tests]) if tests else [], strict=True):
            test["p_holm"] = adjusted
    return out


def agreement_of_repeats(grid: Grid, *, seed: int, resamples: int) -> dict[str, Any] | None:
    """Returns Fleiss' kappa of levels and of right or wrong over repeats, per stage, method and unit; None for one."""
    if len(grid.repeats) < 2:
        return None
    out: dict[str, Any] = {}
    for place in grid.places:
        stage, method, unit = place
        own = {}
        for name, measure in (("levels", score_of), ("right", is_right)):
            ratings = _ratings(grid, place, measure)
            found = measure_stability(ratings, np.random.default_rng(seed), resamples)
            own[name] = {
                "kappa": found.kappa.value,
                "ci95": bounds(found.kappa.interval),
                "flip_rate": found.flip_rate.value,
                "n": found.complete,
                "missing": found.missing,
            }
        out.setdefault(stage, {}).setdefault(method, {})[unit] = own
    return out


def _ratings(grid: Grid, place: Place, measure: Any) -> npt.NDArray[np.int64]:
    by_row = dict(zip(grid.rows, grid.at(place), strict=True))
    table = np.full((len(grid.cases), len(grid.repeats)), -1, dtype=np.int64)
    for row, case in enumerate(grid.cases):
        for column, repeat in enumerate(grid.repeats):
            record = by_row.get((case, repeat))
            value = None if record is None else measure(record, place[2])
            table[row, column] = -1 if value is None else int(value)
    return table
