"""Intervals of what is computed from sums over items: means, standard deviations, ratios of means, shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DeclarationError
from dspy_mama.stats.intervals import LEVEL, Estimate, Method, bca_interval, percentile_interval
from dspy_mama.stats.resampling import draw_weights

Floats = npt.NDArray[np.float64]
OfSums = Callable[[Floats], Floats]
"""Sums of shape (..., columns) to values of shape (...)."""


def sums_estimate(
    columns: npt.ArrayLike,
    statistic: OfSums,
    rng: np.random.Generator,
    resamples: int = 1000,
    *,
    method: Method = "percentile",
    level: float = LEVEL,
) -> Estimate:
    """Returns a statistic of column sums with its interval over resampled items (Efron 1979).

    The interval does not depend on the order of the items. One item alone gives a value and no interval.

    Args:
        columns: Numbers of each item, shape (items, columns); no NaN.
        statistic: From sums over items to the value; NaN where it is undefined.
        rng: Source of randomness.
        resamples: How many, at least 1.
        method: Kind of interval.
        level: Coverage in (0, 1).

    Raises:
        DeclarationError: Fewer than one resample.
    """
    if resamples < 1:
        raise DeclarationError(f"resamples must be at least 1, not {resamples}")
    table = np.asarray(columns, dtype=np.float64)
    if not len(table):
        return Estimate(None, None)
    # Items that agree in every column are one kind; sorted, so that any order of items gives the same resamples.
    rows, multiplicity = np.unique(table, axis=0, return_counts=True)
    whole = multiplicity @ rows
    value = _of(statistic, whole)
    if np.isnan(value):
        return Estimate(None, None)
    if len(table) < 2:
        return Estimate(float(value), None)
    kinds = np.repeat(np.arange(len(rows)), multiplicity)
    blocks = [weights @ rows for weights in draw_weights(rng, resamples, kinds, multiplicity.astype(np.int64))]
    draws = _of(statistic, np.concatenate(blocks))
    if method == "percentile":
        return Estimate(float(value), percentile_interval(draws, level))
    jackknife = _of(statistic, whole - rows)
    return Estimate(float(value), bca_interval(float(value), draws, jackknife, multiplicity.astype(np.int64), level))


def _of(statistic: OfSums, sums: Floats) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(statistic(sums), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def mean_of_sums(sums: Floats) -> Floats:
    """Returns the mean from columns (value, 1)."""
    return np.asarray(sums[..., 0] / sums[..., 1])


def deviation_of_sums(sums: Floats) -> Floats:
    """Returns the sample standard deviation (n - 1) from columns (value, value squared, 1)."""
    n = sums[..., 2]
    spread = np.maximum(sums[..., 1] - sums[..., 0] ** 2 / n, 0.0)
    return np.asarray(np.sqrt(spread / (n - 1)))


def wilson_interval(successes: int, n: int, level: float = LEVEL) -> tuple[float, float] | None:
    """Returns Wilson's score interval of a share (Wilson 1927); None without any item.

    Args:
        successes: Items that count, 0 to `n`.
        n: Items.
        level: Coverage in (0, 1).
    """
    if n == 0:
        return None
    from scipy.special import ndtri

    z = float(ndtri(1 - (1 - level) / 2))
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At 0 and n the bound is exact; rounding must not carry it past.
    low, high = max(0.0, float(centre - half)), min(1.0, float(centre + half))
    return (0.0 if successes == 0 else low, 1.0 if successes == n else high)
