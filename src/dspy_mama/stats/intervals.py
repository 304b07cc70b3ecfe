"""Bootstrap intervals of any statistic of confusion counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from dspy_mama.stats.resampling import CountDraws

Floats = npt.NDArray[np.float64]
Method = Literal["percentile", "bca"]
Statistic = Callable[[npt.NDArray[Any]], Floats]
"""Counts of shape (..., columns, 4) to values of shape (...)."""

LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A bootstrap interval.

    Attributes:
        low: Lower bound.
        high: Upper bound.
        resamples: Resamples it rests on.
        undefined: Resamples left out because the statistic has no value on them.
        method: `percentile`, or `bca` (bias-corrected and accelerated).
    """

    low: float
    high: float
    resamples: int
    undefined: int
    method: Method = "percentile"

    def excludes_zero(self) -> bool:
        """Says whether 0 lies outside."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval; either is None where it is undefined (no pair, or a single unit)."""

    value: float | None
    interval: Interval | None


def percentile_interval(draws: Floats, level: float = LEVEL) -> Interval | None:
    """Returns the percentile interval (Efron 1979), or None where no draw has a value.

    Args:
        draws: The statistic on each resample; NaN = undefined.
        level: Coverage in (0, 1); 0.95 = the 2.5th and 97.5th percentiles.
    """
    known = draws[~np.isnan(draws)]
    if not len(known):
        return None
    # Rounded, since 1 - 0.95 is a little more than 0.05.
    tail = round(100 * (1 - level) / 2, 9)
    low, high = np.percentile(known, [tail, 100 - tail])
    return Interval(float(low), float(high), len(known), len(draws) - len(known))


def bca_interval(
    value: float, draws: Floats, jackknife: Floats, multiplicity: npt.NDArray[np.int64], level: float = LEVEL
) -> Interval | None:
    """Returns the bias-corrected and accelerated interval (Efron 1987; Efron and Tibshirani 1993, section 14.3).

    Falls back to the percentile interval, and says so in `method`, where all draws lie on one side of the value or
    the jackknife does not vary.

    Args:
        value: The statistic of the data.
        draws: The statistic on each resample; NaN = undefined.
        jackknife: The statistic without one unit of each kind.
        multiplicity: Units of each kind.
        level: Coverage in (0, 1).
    """
    from scipy.special import ndtr, ndtri

    known = draws[~np.isnan(draws)]
    left = ~np.isnan(jackknife)
    if not len(known) or not left.any():
        return percentile_interval(draws, level)
    # Ties with the value count half: counts are discrete, and ties are common at small n.
    below = ((known < value).sum() + (known == value).sum() / 2) / len(known)
    centred = np.average(jackknife[left], weights=multiplicity[left]) - jackknife[left]
    spread = float((multiplicity[left] * centred**2).sum())
    if not 0 < below < 1 or spread == 0:
        return percentile_interval(draws, level)
    bias = float(ndtri(below))
    acceleration = float((multiplicity[left] * centred**3).sum()) / (6 * spread**1.5)
    tails = ndtri(np.array([(1 - level) / 2, 1 - (1 - level) / 2]))
    levels = ndtr(bias + (bias + tails) / (1 - acceleration * (bias + tails)))
    low, high = np.percentile(known, 100 * levels)
    return Interval(float(low), float(high), len(known), len(draws) - len(known), "bca")


def estimate(
    counts: CountDraws, statistic: Statistic, *, level: float = LEVEL, method: Method = "percentile"
) -> Estimate:
    """Returns a statistic of the data with its interval.

    One unit alone gives a value and no interval: its resamples are all the same.
    """
    value = float(statistic(counts.observed))
    if np.isnan(value):
        return Estimate(None, None)
    if counts.units < 2:
        return Estimate(value, None)
    draws = np.asarray(statistic(counts.draws), dtype=np.float64)
    if method == "percentile":
        return Estimate(value, percentile_interval(draws, level))
    jackknife = np.asarray(statistic(counts.observed - counts.contributions), dtype=np.float64)
    return Estimate(value, bca_interval(value, draws, jackknife, counts.multiplicity, level))
