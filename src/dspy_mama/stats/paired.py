"""Is one system better than another on the same pairs? Differences on shared resamples, and McNemar's test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dspy_mama.core.confusion import EXCLUDED, Codes
from dspy_mama.stats.intervals import LEVEL, Interval, Method, Statistic, estimate
from dspy_mama.stats.resampling import CountDraws

Finding = Literal["higher", "lower", "not distinguishable"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference, second minus first.

    Attributes:
        value: The difference, or None where one side is undefined.
        interval: Its bootstrap interval, or None.
    """

    value: float | None
    interval: Interval | None

    @property
    def significant(self) -> bool:
        """True only where the interval excludes 0."""
        return self.interval is not None and self.interval.excludes_zero()

    @property
    def finding(self) -> Finding:
        """The difference in words: second `higher` or `lower` than first, or `not distinguishable`."""
        if not self.significant or self.interval is None:
            return "not distinguishable"
        return "higher" if self.interval.low > 0 else "lower"


def shared_pairs(first: Codes, second: Codes) -> tuple[Codes, Codes]:
    """Excludes, column by column, every pair that is not scored in both: a paired difference has no other pairs."""
    absent = (first == EXCLUDED) | (second == EXCLUDED)
    return tuple(np.where(absent, EXCLUDED, codes).astype(np.int8) for codes in (first, second))  # type: ignore[return-value]


def paired_difference(
    counts: CountDraws, first: Statistic, second: Statistic, *, level: float = LEVEL, method: Method = "percentile"
) -> Difference:
    """Returns second minus first, draw by draw on the same resamples.

    Args:
        counts: Counts of both systems' columns, drawn together; of pairs scored in both (`shared_pairs`).
        first: Picks the first system's value out of the counts.
        second: Picks the second system's value.
        level: Coverage of the interval in (0, 1).
        method: Kind of interval.
    """
    found = estimate(counts, lambda table: second(table) - first(table), level=level, method=method)
    return Difference(found.value, found.interval)


def mcnemar_exact(first_right: npt.NDArray[np.bool_], second_right: npt.NDArray[np.bool_]) -> tuple[int, int, float]:
    """McNemar's exact test on paired right/wrong outcomes (two-sided binomial on the discordant pairs).

    Returns:
        Pairs only the first got right, pairs only the second got right, and the p-value (1.0 without discordant pairs).
    """
    only_first = int((first_right & ~second_right).sum())
    only_second = int((~first_right & second_right).sum())
    if only_first + only_second == 0:
        return 0, 0, 1.0
    from scipy.stats import binomtest

    return only_first, only_second, float(binomtest(only_first, only_first + only_second).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values adjusted for their number (Holm 1979), in the given order, each at most 1."""
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    stepped = raw[order] * np.arange(len(raw), 0, -1)
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return [float(value) for value in adjusted]
