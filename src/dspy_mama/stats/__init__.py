"""Bootstrap intervals, paired differences, tests of groups and agreement, on plain arrays."""

from dspy_mama.stats.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from dspy_mama.stats.groups import (
    GroupComparison,
    compare_groups,
    compare_proportions,
    pairwise_proportions,
    shapiro_wilk,
)
from dspy_mama.stats.intervals import Estimate, Interval, bca_interval, estimate, percentile_interval
from dspy_mama.stats.paired import Difference, holm, mcnemar_exact, paired_difference, shared_pairs
from dspy_mama.stats.probability import resample_probabilities
from dspy_mama.stats.resampling import CountDraws, resample_counts
from dspy_mama.stats.stability import Stability, fleiss_estimate, flip_rates, measure_stability, minority_shares

__all__ = [
    "CountDraws",
    "Difference",
    "Estimate",
    "GroupComparison",
    "Interval",
    "Stability",
    "bca_interval",
    "cohen_kappa",
    "compare_groups",
    "compare_proportions",
    "estimate",
    "fleiss_estimate",
    "fleiss_kappa",
    "flip_rates",
    "holm",
    "krippendorff_alpha",
    "mcnemar_exact",
    "measure_stability",
    "minority_shares",
    "paired_difference",
    "pairwise_proportions",
    "percentile_interval",
    "resample_counts",
    "resample_probabilities",
    "shapiro_wilk",
    "shared_pairs",
]
