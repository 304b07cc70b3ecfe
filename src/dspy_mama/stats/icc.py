"""Intraclass correlation: do two raters give the same scores, not only scores that rise together?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DeclarationError


def icc_agreement(ratings: npt.NDArray[np.float64]) -> float | None:
    """Returns ICC(A,1), absolute agreement of single ratings (two-way; McGraw and Wong 1996), or None where undefined.

    Args:
        ratings: Scores of shape (items, raters), none missing.

    Raises:
        DeclarationError: Fewer than two raters.
    """
    if ratings.ndim != 2 or ratings.shape[1] < 2:
        raise DeclarationError("an intraclass correlation needs at least two raters")
    n, k = ratings.shape
    if n < 2:
        return None
    whole = ratings.mean()
    rows, columns = ratings.mean(axis=1), ratings.mean(axis=0)
    between = k * ((rows - whole) ** 2).sum() / (n - 1)
    raters = n * ((columns - whole) ** 2).sum() / (k - 1)
    rest = ((ratings - rows[:, None] - columns[None, :] + whole) ** 2).sum() / ((n - 1) * (k - 1))
    below = between + (k - 1) * rest + k * (raters - rest) / n
    return None if np.isclose(below, 0) else float((between - rest) / below)
