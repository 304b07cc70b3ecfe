"""Do several groups differ? Normality first, then analysis of variance or ranks; chi-square for proportions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DeclarationError
from dspy_mama.stats.paired import holm

ALPHA: Final = 0.05
EXPECTED: Final = 5.0
"""Expected count below which the chi-square approximation is not trusted (Cochran 1954)."""

GroupTest = Literal["anova", "kruskal_wallis", "chi_square", "none"]


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """What a test of several groups says.

    Attributes:
        test: Which test was made; `none` where the data admit none (fewer than two groups, or all values equal).
        statistic: F, H or chi-square; None without a test.
        p: Probability of so much difference by chance; None without a test.
        freedom: Degrees of freedom.
        normality: Shapiro-Wilk's p by group; None where it is undefined (fewer than 3 values, or all equal).
        expected_minimum: Smallest expected count of a chi-square test; below 5 its p is not to be trusted.
        n: Values by group.
    """

    test: GroupTest
    statistic: float | None
    p: float | None
    freedom: tuple[int, ...] = ()
    normality: Mapping[str, float | None] | None = None
    expected_minimum: float | None = None
    n: Mapping[str, int] | None = None


def shapiro_wilk(values: npt.NDArray[np.float64]) -> float | None:
    """Returns the p-value of Shapiro and Wilk's test of normality; None where it is undefined.

    Args:
        values: At least 3 that are not all the same; else there is nothing to test.
    """
    if len(values) < 3 or np.ptp(values) == 0:
        return None
    from scipy.stats import shapiro

    return float(shapiro(values).pvalue)


def compare_groups(groups: Mapping[str, Sequence[float]], alpha: float = ALPHA) -> GroupComparison:
    """Tests whether independent groups differ: ANOVA where every group looks normal, else Kruskal and Wallis.

    The groups are taken as independent, as the paper does; answers of several methods to the same cases are not, and
    the paired differences beside this test are the sharper question.

    Args:
        groups: Values by group; empty groups are left out.
        alpha: Level at which Shapiro and Wilk's test speaks against normality.
    """
    known = {name: np.asarray(values, dtype=np.float64) for name, values in groups.items() if len(values)}
    n = {name: len(values) for name, values in known.items()}
    normality = {name: shapiro_wilk(values) for name, values in known.items()}
    pooled = np.concatenate(list(known.values())) if known else np.zeros(0)
    if len(known) < 2 or np.ptp(pooled) == 0 or len(pooled) <= len(known):
        return GroupComparison("none", None, None, (), normality, None, n)
    from scipy.stats import f_oneway, kruskal

    if all(p is not None and p > alpha for p in normality.values()):
        freedom: tuple[int, ...] = (len(known) - 1, len(pooled) - len(known))
        return _tested("anova", f_oneway(*known.values()), freedom, normality, n)
    return _tested("kruskal_wallis", kruskal(*known.values()), (len(known) - 1,), normality, n)


def _tested(
    test: GroupTest, found: Any, freedom: tuple[int, ...], normality: Mapping[str, float | None], n: Mapping[str, int]
) -> GroupComparison:
    """Returns a test's finding; groups with the same values come out below 0 by rounding, which has no p."""
    statistic, p = float(found.statistic), float(found.pvalue)
    if np.isclose(statistic, 0, atol=1e-9):
        statistic, p = 0.0, 1.0
    if np.isnan(statistic) or np.isnan(p):
        return GroupComparison("none", None, None, (), normality, None, n)
    return GroupComparison(test, statistic, p, freedom, normality, None, n)


def compare_proportions(counts: Mapping[str, tuple[int, int]]) -> GroupComparison:
    """Tests whether proportions differ (Pearson's chi-square without Yates' correction).

    Args:
        counts: Successes and trials by group; groups without trials are left out.

    Raises:
        DeclarationError: A group has more successes than trials, or a negative count.
    """
    if wrong := [name for name, (hits, trials) in counts.items() if not 0 <= hits <= trials]:
        raise DeclarationError(f"proportions of {', '.join(wrong)}: successes must lie between 0 and the trials")
    known = {name: (hits, trials) for name, (hits, trials) in counts.items() if trials}
    n = {name: trials for name, (_, trials) in known.items()}
    table = np.array([[hits, trials - hits] for hits, trials in known.values()])
    if len(known) < 2 or not table.sum(axis=0).all():
        return GroupComparison("none", None, None, n=n)
    from scipy.stats import chi2_contingency

    found = chi2_contingency(table, correction=False)
    smallest = float(found.expected_freq.min())
    return GroupComparison(
        "chi_square", float(found.statistic), float(found.pvalue), (int(found.dof),), None, smallest, n
    )


def pairwise_proportions(counts: Mapping[str, tuple[int, int]]) -> dict[tuple[str, str], float]:
    """Returns Holm-adjusted chi-square p-values of every two groups that can be tested.

    Args:
        counts: Successes and trials by group.
    """
    tested: dict[tuple[str, str], float] = {}
    for one, two in combinations(counts, 2):
        p = compare_proportions({one: counts[one], two: counts[two]}).p
        if p is not None:
            tested[one, two] = p
    return dict(zip(tested, holm(list(tested.values())), strict=True))
