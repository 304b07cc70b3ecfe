"""Measures of a probability of risk, weighted, so that one formula serves the data and its resamples."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PROBABILITY_METRICS: Final = ("auc", "average_precision", "brier", "ece")

ECE_BINS: Final = 10
"""Equal-width bins, the usual number (Guo et al. 2017 use 15, Naeini et al. 2015 use 10)."""


def _by_group(values: Floats, starts: npt.NDArray[np.intp]) -> Floats:
    return np.asarray(np.add.reduceat(values, starts, axis=-1), dtype=np.float64)


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    out = np.full(np.shape(numerator), np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


def probability_bins(probability: Floats, bins: int = ECE_BINS) -> npt.NDArray[np.intp]:
    """Returns the equal-width bin of each probability, 0 to bins - 1; the last bin holds 1.0."""
    return np.minimum((probability * bins).astype(np.intp), bins - 1)


def probability_metrics(
    positive: npt.NDArray[np.bool_], probability: Floats, weights: Floats | None = None
) -> dict[str, Floats]:
    """Returns AUC, average precision, Brier score and expected calibration error.

    AUC counts ties half (Mann-Whitney). Average precision sums precision over recall steps, ties taken together, as
    scikit-learn does. The calibration error is the weighted mean over ten bins of |mean probability - share risky|.

    Args:
        positive: Shape (n,): gold is risky.
        probability: Shape (n,): probability of risk in [0, 1].
        weights: Shape (..., n): how often each pair counts; None = once.

    Returns:
        The four of `PROBABILITY_METRICS`, shape (...); NaN where undefined (AUC without both classes, average
        precision without a risky pair, all of them without a pair).
    """
    weights = np.ones(len(positive)) if weights is None else weights
    if len(positive) == 0:
        return {name: np.full(weights.shape[:-1], np.nan) for name in PROBABILITY_METRICS}
    order = np.argsort(probability, kind="stable")
    p, y = probability[order], positive[order].astype(np.float64)
    w = weights[..., order]
    starts = np.flatnonzero(np.concatenate(([True], p[1:] != p[:-1])))
    risky, safe = _by_group(w * y, starts), _by_group(w * (1 - y), starts)
    risky_n, safe_n = risky.sum(axis=-1), safe.sum(axis=-1)
    safe_below = np.cumsum(safe, axis=-1) - safe
    from_top = np.cumsum(risky[..., ::-1], axis=-1)[..., ::-1]
    named = from_top + np.cumsum(safe[..., ::-1], axis=-1)[..., ::-1]
    precision = np.divide(from_top, named, out=np.zeros_like(named), where=named > 0)
    total = w.sum(axis=-1)
    membership = (probability_bins(p)[:, None] == np.arange(ECE_BINS)).astype(np.float64)
    gap = np.abs(w @ (membership * (p - y)[:, None])).sum(axis=-1)
    return {
        "auc": _divide((risky * (safe_below + safe / 2)).sum(axis=-1), risky_n * safe_n),
        "average_precision": _divide((risky * precision).sum(axis=-1), risky_n),
        "brier": _divide((w * (p - y) ** 2).sum(axis=-1), total),
        "ece": _divide(gap, total),
    }
