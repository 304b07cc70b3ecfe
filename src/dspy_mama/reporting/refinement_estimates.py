"""What the loop's items come to, with intervals: the figures behind Tables I to V."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dspy_mama.scoring.refinement import (
    CATEGORIES,
    LEVELS,
    PRINCIPLES,
    RefinedItem,
    Score,
    downgrades,
    grouped,
    iteration_counts,
    level_counts,
    per_item_reduction,
    velocity,
)
from dspy_mama.stats.intervals import Estimate, Method
from dspy_mama.stats.sums import Floats, deviation_of_sums, mean_of_sums, sums_estimate, wilson_interval

Pairs = Sequence[tuple[Score, Score]]


class Bootstrap:
    """How every interval of a summary is made; each starts from the same seed, so that none depends on another."""

    def __init__(self, seed: int, resamples: int, method: Method) -> None:
        self.seed, self.resamples, self.method = seed, resamples, method

    def of(self, columns: Sequence[Sequence[float]], statistic: Callable[[Floats], Floats]) -> dict[str, Any]:
        """Returns value and interval of a statistic of column sums."""
        rng = np.random.default_rng(self.seed)
        return plain(sums_estimate(columns, statistic, rng, self.resamples, method=self.method))

    def mean(self, values: Sequence[float]) -> dict[str, Any]:
        """Returns a mean with its interval."""
        return self.of([(value, 1) for value in values], mean_of_sums)

    def deviation(self, values: Sequence[float]) -> dict[str, Any]:
        """Returns a sample standard deviation with its interval."""
        return self.of([(value, value**2, 1) for value in values], deviation_of_sums)


def plain(estimate: Estimate) -> dict[str, Any]:
    """Returns an estimate as plain data."""
    own = estimate.interval
    return {"value": estimate.value, "ci95": None if own is None else [own.low, own.high]}


def share(count: int, n: int) -> dict[str, Any]:
    """Returns a share with its count, its denominator and Wilson's interval."""
    own = wilson_interval(count, n)
    return {"value": count / n if n else None, "ci95": list(own) if own else None, "count": count, "n": n}


def loop_summary(
    items: Sequence[RefinedItem],
    *,
    max_iterations: int = 5,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
) -> dict[str, Any]:
    """Returns the figures behind Tables I to V.

    Args:
        items: What went through the loop; those that could not be carried out count in no figure but `unscored`, and
            those whose first version could not be read in no change.
        max_iterations: Assessments that the loop may make.
        seed: Seed of the resamples.
        resamples: Resamples behind each bootstrap interval.
        method: Kind of bootstrap interval.

    Returns:
        Plain data: `n`, `unscored`, `overall` (convergence, iterations, reduction, downgrade), `final_check`,
        `iterations`, `failed`, `principles`, `categories`, `levels`. What is undefined is null.
    """
    draw = Bootstrap(seed, resamples, method)
    done = [item for item in items if item.converged is not None]
    converged = [item for item in done if item.converged]
    pairs = [item.pair for item in done if item.pair is not None]
    return {
        "n": len(items),
        "scored": len(done),
        "unscored": len(items) - len(done),
        "max_iterations": max_iterations,
        "overall": {
            "convergence": share(len(converged), len(done)),
            "convergence_if_unscored_failed": share(len(converged), len(items)),
            **_iterations(converged, draw),
            **_changes(pairs, draw),
        },
        "final_check": _final_check(done, draw),
        "iterations": {str(k): v for k, v in iteration_counts(done, max_iterations).items()},
        "failed": len(done) - len(converged),
        "principles": {name: _principle(own, draw) for name, own in grouped(done, "principle", PRINCIPLES).items()},
        "without_principle": sum(item.principle not in PRINCIPLES for item in done),
        "categories": {name: _category(name, done, draw) for name in CATEGORIES},
        "without_category": sum(item.category not in CATEGORIES for item in done),
        "levels": _levels(done),
    }


def _iterations(converged: Sequence[RefinedItem], draw: Bootstrap) -> dict[str, Any]:
    numbers = [item.iterations for item in converged]
    return {"mean_iterations": draw.mean(numbers), "sd_iterations": draw.deviation(numbers)}


def _changes(pairs: Pairs, draw: Bootstrap) -> dict[str, Any]:
    """Returns reduction (one minus the ratio of means), the items' own mean beside it, and downgrades."""
    gone = draw.of([(before.ama, after.ama) for before, after in pairs], lambda sums: 1 - sums[..., 1] / sums[..., 0])
    own, undefined = per_item_reduction(pairs)
    return {
        "reduction": {
            **gone,
            "n": len(pairs),
            "before": draw.mean([before.ama for before, _ in pairs]),
            "after": draw.mean([after.ama for _, after in pairs]),
            "per_item_mean": own,
            "per_item_undefined": undefined,
        },
        "downgrade": share(*downgrades(pairs)),
    }


def _final_check(done: Sequence[RefinedItem], draw: Bootstrap) -> dict[str, Any] | None:
    """Returns what the returned texts are worth; None where no text was looked at once more after the budget."""
    checked = [item for item in done if not item.converged and item.returned_pair is not None]
    if not checked:
        return None
    known = [item.returned_pair for item in done if item.returned_pair is not None]
    return {"checked": len(checked), "unchecked": len(done) - len(known), **_changes(known, draw)}


def _principle(items: Sequence[RefinedItem], draw: Bootstrap) -> dict[str, Any]:
    converged = [item for item in items if item.converged]
    return {"n": len(items), "converged": len(converged), **_iterations(converged, draw)}


def _category(name: str, done: Sequence[RefinedItem], draw: Bootstrap) -> dict[str, Any]:
    """Returns violations before and after, and velocity: over the mean iterations of all converged items."""
    pairs = [item.pair for item in done if item.category == name and item.pair is not None]
    rows = []
    for item in done:
        before, after = item.pair or (None, None)
        moved = (before.ama, after.ama, 1.0) if item.category == name and before and after else (0.0, 0.0, 0.0)
        rows.append((*moved, float(item.iterations if item.converged else 0), float(bool(item.converged))))
    speed = draw.of(rows, _velocity_of_sums)
    return {
        "n": len(pairs),
        "before": draw.mean([before.ama for before, _ in pairs]),
        "after": draw.mean([after.ama for _, after in pairs]),
        "velocity": speed,
    }


def _velocity_of_sums(sums: Floats) -> Floats:
    """Returns velocity from sums of violations before, after and their count, and of iterations and their count."""
    before, after = sums[..., 0] / sums[..., 2], sums[..., 1] / sums[..., 2]
    return velocity(before, after, sums[..., 3] / sums[..., 4])


def _levels(done: Sequence[RefinedItem]) -> dict[str, Any]:
    """Returns the levels before, after the loop, and of the returned texts, each with its share's interval."""
    sides = {
        "initial": [item.pair[0] for item in done if item.pair],
        "final": [item.pair[1] for item in done if item.pair],
        "returned": [item.returned for item in done if item.returned],
    }
    counts = {side: level_counts(scores) for side, scores in sides.items()}
    return {
        str(level): {side: share(counts[side][level], len(scores)) for side, scores in sides.items()}
        for level in LEVELS
    }
