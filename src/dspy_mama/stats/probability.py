"""Bootstrap of what a probability of risk is worth: AUC, average precision, Brier score, calibration error."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core.probabilities import probability_metrics
from dspy_mama.stats.resampling import CHUNK_BYTES, draw_weights

Floats = npt.NDArray[np.float64]

LARGE: Final = 20_000
"""Pairs above which probabilities are rounded to four digits for the resamples (never for the values themselves)."""

_GRID: Final = 10_000


def resample_probabilities(
    positive: npt.NDArray[np.bool_],
    probability: Floats,
    rng: np.random.Generator,
    resamples: int = 1000,
    *,
    clusters: npt.NDArray[np.int64] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> dict[str, Floats]:
    """Returns each of `PROBABILITY_METRICS` on each resample; NaN where a resample leaves it undefined.

    Above `LARGE` pairs, equal rounded probabilities are drawn together, which bounds time and moves no value by more
    than the rounding: far below the width of the interval.

    Args:
        positive: Shape (n,), n at least 1: gold is risky.
        probability: Shape (n,): probability of risk in [0, 1].
        rng: Source of randomness.
        resamples: How many, at least 1.
        clusters: Shape (n,): pairs of one cluster are drawn together; None = each pair by itself.
        chunk_bytes: Memory of one block of resamples.
    """
    n = len(positive)
    if clusters is not None:
        member = np.unique(clusters, return_inverse=True)[1]
        units = int(member.max()) + 1
        draws = draw_weights(rng, resamples, np.arange(units), np.ones(units, dtype=np.int64), chunk_bytes)
        parts = [probability_metrics(positive, probability, block[:, member]) for block in draws]
    elif n > LARGE:
        cell = np.rint(probability * _GRID).astype(np.int64) * 2 + positive
        cells, kinds, multiplicity = np.unique(cell, return_inverse=True, return_counts=True)
        draws = draw_weights(rng, resamples, kinds.ravel(), multiplicity.astype(np.int64), chunk_bytes)
        parts = [probability_metrics(cells % 2 == 1, (cells // 2) / _GRID, block) for block in draws]
    else:
        draws = draw_weights(rng, resamples, np.arange(n), np.ones(n, dtype=np.int64), chunk_bytes)
        parts = [probability_metrics(positive, probability, block) for block in draws]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
