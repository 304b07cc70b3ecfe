"""How often repeated runs contradict one another: flip rates and Fleiss' kappa, with intervals over items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DeclarationError
from dspy_mama.stats.agreement import MISSING, fleiss_kappa
from dspy_mama.stats.intervals import LEVEL, Estimate, percentile_interval
from dspy_mama.stats.resampling import draw_weights

Floats = npt.NDArray[np.float64]
Ratings = npt.NDArray[np.integer]
_Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Stability:
    """How stable the labels of repeated runs are.

    Attributes:
        n: Items with at least two labels.
        complete: Items with a label in every repeat; kappa rests on these.
        missing: Labels that are missing, over all items and repeats.
        flipped: Items whose labels are not all the same.
        flip_rate: Mean share of pairs of repeats that differ, in [0, 1]: the estimated chance that two runs disagree
            on an item.
        kappa: Fleiss' kappa; undefined where only one label was ever given.
    """

    n: int
    complete: int
    missing: int
    flipped: int
    flip_rate: Estimate
    kappa: Estimate


def _label_counts(ratings: Ratings) -> npt.NDArray[np.int64]:
    width = int(max(ratings.max(initial=0), 0)) + 1
    return np.stack([(ratings == label).sum(axis=1) for label in range(width)], axis=1).astype(np.int64)


def _differing(counts: npt.NDArray[np.int64]) -> Floats:
    """Returns the share of pairs of labels that differ, per row of counts; NaN with fewer than two labels."""
    known = counts.sum(axis=1).astype(np.float64)
    pairs = known * (known - 1)
    alike = (counts * (counts - 1)).sum(axis=1)
    out = np.full(len(counts), np.nan)
    np.divide(pairs - alike, pairs, out=out, where=pairs > 0)
    return out


def flip_rates(ratings: Ratings) -> Floats:
    """Returns per item the share of pairs of repeats whose labels differ, in [0, 1]; NaN with fewer than two labels.

    Args:
        ratings: Category numbers from 0, shape (items, repeats), -1 missing.
    """
    return _differing(_label_counts(ratings))


def minority_shares(ratings: Ratings) -> Floats:
    """Returns per item the share of its labels that are not its most frequent one; NaN without any label.

    Args:
        ratings: Category numbers from 0, shape (items, repeats), -1 missing.
    """
    counts = _label_counts(ratings)
    known = counts.sum(axis=1)
    out = np.full(len(counts), np.nan)
    np.divide(known - counts.max(axis=1), known, out=out, where=known > 0)
    return out


def _resampled(
    counts: npt.NDArray[np.int64], statistic: Callable[[npt.NDArray[np.int64]], _Statistic],
    rng: np.random.Generator, resamples: int, level: float,
) -> Estimate:  # fmt: skip
    """Returns a statistic of items with its percentile interval over resampled items.

    Items with the same counts are one kind, so that a resample is a vector of how often each kind was drawn.
    """
    if not len(counts):
        return Estimate(None, None)
    table, kinds, multiplicity = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
    of_weights = statistic(table)
    value = float(of_weights(multiplicity[None, :].astype(np.float64))[0])
    if np.isnan(value) or len(counts) < 2:
        return Estimate(None if np.isnan(value) else value, None)
    blocks = draw_weights(rng, resamples, kinds.ravel(), multiplicity.astype(np.int64))
    return Estimate(value, percentile_interval(np.concatenate([of_weights(block) for block in blocks]), level))


def _mean_flip_rate(table: npt.NDArray[np.int64]) -> _Statistic:
    rates = _differing(table)
    return lambda weights: np.asarray(weights @ rates / weights.sum(axis=1), dtype=np.float64)


def _fleiss(table: npt.NDArray[np.int64]) -> _Statistic:
    alike = 1 - _differing(table)
    labels = table.sum(axis=1)[0]

    def kappa(weights: Floats) -> Floats:
        items = weights.sum(axis=1)
        observed = weights @ alike / items
        chance = ((weights @ table / (items * labels)[:, None]) ** 2).sum(axis=1)
        out = np.full(len(weights), np.nan)
        np.divide(observed - chance, 1 - chance, out=out, where=~np.isclose(chance, 1))
        return out

    return kappa


def fleiss_estimate(
    ratings: Ratings, rng: np.random.Generator, resamples: int = 1000, *, level: float = LEVEL
) -> Estimate:
    """Returns Fleiss' kappa with the percentile interval of a bootstrap over items (Zapf et al. 2016).

    Resamples in which only one label occurs have no kappa; the interval counts them as undefined.

    Args:
        ratings: Category numbers from 0, shape (items, repeats), -1 missing; items with a missing label are left out.
        rng: Source of randomness.
        resamples: Resamples of items, at least 1.
        level: Coverage in (0, 1).

    Raises:
        DeclarationError: Fewer than two repeats.
    """
    fleiss_kappa(ratings[:0])  # refuses fewer than two repeats
    complete = ratings[(ratings != MISSING).all(axis=1)]
    return _resampled(_label_counts(complete), _fleiss, rng, resamples, level)


def measure_stability(
    ratings: Ratings, rng: np.random.Generator, resamples: int = 1000, *, level: float = LEVEL
) -> Stability:
    """Says how often repeats contradict one another, over all items.

    Args:
        ratings: Category numbers from 0, shape (items, repeats), -1 missing.
        rng: Source of randomness.
        resamples: Resamples of items, at least 1.
        level: Coverage of the intervals in (0, 1).

    Raises:
        DeclarationError: Fewer than two repeats, or fewer than one resample.
    """
    if resamples < 1:
        raise DeclarationError(f"resamples must be at least 1, not {resamples}")
    counts = _label_counts(ratings)
    comparable = counts[counts.sum(axis=1) >= 2]
    return Stability(
        n=len(comparable),
        complete=int((ratings != MISSING).all(axis=1).sum()),
        missing=int((ratings == MISSING).sum()),
        flipped=int((_differing(comparable) > 0).sum()),
        flip_rate=_resampled(comparable, _mean_flip_rate, rng, resamples, level),
        kappa=fleiss_estimate(ratings, rng, resamples, level=level),
    )
