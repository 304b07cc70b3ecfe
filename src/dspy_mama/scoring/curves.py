"""ROC and reliability of probabilities, as points small enough to keep beside the numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DOMAINS
from dspy_mama.core.probabilities import ECE_BINS, probability_bins
from dspy_mama.scoring.labels import Labels
from dspy_mama.scoring.score import scored_probabilities

MAX_POINTS: Final = 201
"""Points kept of a ROC curve: more than a picture can show."""

_Z95: Final = 1.959963984540054


def roc_points(positive: npt.NDArray[np.bool_], probability: npt.NDArray[np.float64]) -> list[list[float]] | None:
    """Returns (false positive rate, true positive rate) from (0, 0) to (1, 1), or None without both classes.

    Args:
        positive: Gold is risky.
        probability: Probability of risk in [0, 1]; equal ones are one step.
    """
    risky = int(positive.sum())
    safe = len(positive) - risky
    if not risky or not safe:
        return None
    order = np.argsort(-probability, kind="stable")
    last_of_value = np.append(np.diff(probability[order]) != 0, True)
    hits = np.cumsum(positive[order])[last_of_value] / risky
    alarms = np.cumsum(~positive[order])[last_of_value] / safe
    points = np.vstack([[0.0, 0.0], np.column_stack([alarms, hits])])
    if len(points) > MAX_POINTS:
        points = points[np.linspace(0, len(points) - 1, MAX_POINTS).round().astype(int)]
    return [[float(x), float(y)] for x, y in points]


def reliability_points(positive: npt.NDArray[np.bool_], probability: npt.NDArray[np.float64]) -> list[dict[str, float]]:
    """Returns one point a bin of ten that holds a pair: what was said and what was so.

    Returns:
        `said` (mean probability), `risky` (share risky by gold), `low` and `high` (Wilson's 95 % interval of that
        share; Wilson 1927) and `n`.
    """
    bins = probability_bins(probability)
    n = np.bincount(bins, minlength=ECE_BINS).astype(np.float64)
    filled = n > 0
    said = np.bincount(bins, probability, ECE_BINS)[filled] / n[filled]
    share = np.bincount(bins, positive, ECE_BINS)[filled] / n[filled]
    n = n[filled]
    scale = 1 + _Z95**2 / n
    centre = (share + _Z95**2 / (2 * n)) / scale
    half = _Z95 / scale * np.sqrt(share * (1 - share) / n + _Z95**2 / (4 * n**2))
    columns = (said, share, np.maximum(centre - half, 0), np.minimum(centre + half, 1), n)
    return [
        dict(zip(("said", "risky", "low", "high", "n"), map(float, row), strict=True))
        for row in zip(*columns, strict=True)
    ]


def probability_curves(labels: Labels) -> dict[str, Any]:
    """Returns per domain with gold and probabilities: `n`, `roc` (None without both classes) and `reliability`."""
    out: dict[str, Any] = {}
    for column, domain in enumerate(DOMAINS):
        rows, positive, probability = scored_probabilities(labels, column)
        if len(rows):
            points = {
                "roc": roc_points(positive, probability),
                "reliability": reliability_points(positive, probability),
            }
            out[domain] = {"n": len(rows), **points}
    return out
