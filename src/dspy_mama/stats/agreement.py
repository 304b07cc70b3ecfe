"""Agreement between raters or between repeated runs, beyond chance."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DeclarationError

MISSING = -1

Scale = Literal["nominal", "ordinal", "interval"]


def _counts(ratings: npt.NDArray[np.integer], categories: int | None) -> npt.NDArray[np.float64]:
    """Counts each category per item; ratings are (items, raters) with -1 missing."""
    if ratings.ndim != 2:
        raise DeclarationError(f"ratings must be (items, raters), not {ratings.shape}")
    width = categories if categories is not None else int(max(ratings.max(initial=0), 0)) + 1
    return np.stack([(ratings == category).sum(axis=1) for category in range(width)], axis=1).astype(np.float64)


def fleiss_kappa(ratings: npt.NDArray[np.integer], categories: int | None = None) -> float | None:
    """Returns Fleiss' kappa (Fleiss 1971), or None where chance agreement is 1 or nothing is left to compare.

    Args:
        ratings: Category numbers from 0, shape (items, raters); items with a missing rating (-1) are left out.
        categories: Number of categories; None = the largest seen.

    Raises:
        DeclarationError: Fewer than two raters.
    """
    if ratings.ndim != 2 or ratings.shape[1] < 2:
        raise DeclarationError("Fleiss' kappa needs at least two raters")
    complete = ratings[(ratings != MISSING).all(axis=1)]
    if not len(complete):
        return None
    counts = _counts(complete, categories)
    raters = ratings.shape[1]
    observed = ((counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))).mean()
    chance = ((counts.sum(axis=0) / counts.sum()) ** 2).sum()
    return None if np.isclose(chance, 1) else float((observed - chance) / (1 - chance))


def cohen_kappa(
    first: npt.NDArray[np.integer],
    second: npt.NDArray[np.integer],
    *,
    quadratic: bool = False,
    categories: int | None = None,
) -> float | None:
    """Returns Cohen's kappa, with quadratic weights for graded scales, or None where it is undefined.

    Args:
        first: First rater's category numbers, -1 missing.
        second: Second rater's.
        quadratic: Weight a disagreement by its squared distance (Cohen 1968).
        categories: Number of categories; None = the largest seen.
    """
    both = (first != MISSING) & (second != MISSING)
    if not both.any():
        return None
    a, b = first[both].astype(np.int64), second[both].astype(np.int64)
    width = categories if categories is not None else int(max(a.max(), b.max())) + 1
    observed = np.bincount(a * width + b, minlength=width * width).reshape(width, width) / len(a)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0))
    grid = np.arange(width)
    distance = (grid[:, None] - grid[None, :]) ** 2
    weights = distance if quadratic else (distance > 0).astype(np.int64)
    disagreement = float((weights * expected).sum())
    return None if disagreement == 0 else float(1 - (weights * observed).sum() / disagreement)


def krippendorff_alpha(ratings: npt.NDArray[np.integer], scale: Scale = "nominal") -> float | None:
    """Returns Krippendorff's alpha (2004; 2011 for the ordinal distance), or None where it is undefined.

    Args:
        ratings: Category numbers from 0, shape (items, raters), -1 missing; items with one rating do not count.
        scale: How far apart two categories are: `nominal` all alike, `interval` by their squared distance, `ordinal`
            by how many ratings lie between them.
    """
    counts = _counts(ratings, None)
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        return None
    per_item = counts.sum(axis=1)
    coincidence = np.einsum("ic,id,i->cd", counts, counts, 1 / (per_item - 1)) - np.diag(
        (counts / (per_item - 1)[:, None]).sum(axis=0)
    )
    totals = coincidence.sum(axis=1)
    distance = _distance(totals, scale)
    n = totals.sum()
    expected = (distance * (np.outer(totals, totals) - np.diag(totals))).sum() / (n - 1)
    return None if expected == 0 else float(1 - (distance * coincidence).sum() / expected)


def _distance(totals: npt.NDArray[np.float64], scale: Scale) -> npt.NDArray[np.float64]:
    """Returns the squared distance of every two categories."""
    grid = np.arange(len(totals))
    if scale == "nominal":
        return np.asarray(grid[:, None] != grid[None, :], dtype=np.float64)
    # Ordinal: a category's place is its mean rank among all ratings.
    place = np.cumsum(totals) - totals / 2 if scale == "ordinal" else grid.astype(np.float64)
    return np.asarray((place[:, None] - place[None, :]) ** 2, dtype=np.float64)
