"""Nonparametric bootstrap of confusion counts: all columns on shared resamples, no loop over resamples.

A resample needs only how often each kind of row was drawn. Rows that agree in every column are one kind, so a
million pairs of a dozen columns are a few thousand kinds, and a resample is one multinomial draw over them: exact,
and bounded in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DeclarationError
from dspy_mama.core.confusion import Codes, confusion_counts

CHUNK_BYTES: Final = 64 << 20
"""Memory of one block of resamples."""

MULTINOMIAL_RATIO: Final = 20
"""Units per kind above which a multinomial draw is cheaper than drawing every unit by its index."""


@dataclass(frozen=True)
class CountDraws:
    """Confusion counts of the data and of every resample.

    Attributes:
        observed: Counts of the data, shape (columns, 4).
        draws: Counts of each resample, shape (resamples, columns, 4).
        contributions: Counts that one unit of each kind brings, shape (kinds, columns, 4); BCa's jackknife needs it.
        multiplicity: How many units are of each kind, shape (kinds,).
    """

    observed: npt.NDArray[np.int64]
    draws: npt.NDArray[np.int64]
    contributions: npt.NDArray[np.int64]
    multiplicity: npt.NDArray[np.int64]

    @property
    def units(self) -> int:
        """Number of units resampled: pairs, or clusters of pairs."""
        return int(self.multiplicity.sum())


_FOLD_LIMIT: Final = 2**60 // 5
"""Row numbers past this are renumbered before the next column is folded in, so that int64 never overflows."""


def draw_weights(
    rng: np.random.Generator,
    resamples: int,
    kinds: npt.NDArray[np.intp],
    multiplicity: npt.NDArray[np.int64],
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[npt.NDArray[np.float64]]:
    """Yields blocks of shape (rows, kinds): how often each kind occurs in each resample of all units.

    Args:
        rng: Source of randomness; the numbers do not depend on `chunk_bytes`.
        resamples: Rows over all blocks.
        kinds: Kind of each unit, shape (units,).
        multiplicity: Units of each kind, shape (kinds,).
        chunk_bytes: Memory of a block.
    """
    units, width = len(kinds), len(multiplicity)
    by_kind = units > MULTINOMIAL_RATIO * width
    rows = max(1, chunk_bytes // (8 * (width if by_kind else 2 * units + width)))
    for start in range(0, resamples, rows):
        block = min(rows, resamples - start)
        if by_kind:
            yield rng.multinomial(units, multiplicity / units, size=block).astype(np.float64)
            continue
        drawn = kinds[rng.integers(0, units, size=(block, units))]
        drawn += (np.arange(block) * width)[:, None]
        yield np.bincount(drawn.ravel(), minlength=block * width).reshape(block, width).astype(np.float64)


def _kinds_of_rows(codes: Codes) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Returns the kind of each row and one row of each kind, kinds in order of their first row.

    That order does not depend on the order of columns, so swapping two systems leaves the resamples as they are.
    """
    kind = np.zeros(len(codes), dtype=np.int64)
    bound = 1
    for column in range(codes.shape[1]):
        if bound > _FOLD_LIMIT:
            kind = np.unique(kind, return_inverse=True)[1].astype(np.int64)
            bound = int(kind.max()) + 1
        # Five codes a column: the four of the table, and excluded.
        kind = kind * 5 + (codes[:, column] + 1)
        bound *= 5
    _, examples, kinds = np.unique(kind, return_index=True, return_inverse=True)
    order = np.argsort(examples)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[kinds.ravel()], examples[order]


def _one_hot(codes: Codes) -> npt.NDArray[np.int64]:
    return np.asarray(codes[:, :, None] == np.arange(4), dtype=np.int64)


def _by_cluster(codes: Codes, clusters: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sums the counts of each cluster, one column at a time."""
    number = int(clusters.max()) + 1
    out = np.zeros((number, codes.shape[1], 4), dtype=np.int64)
    for column in range(codes.shape[1]):
        for code in range(4):
            out[:, column, code] = np.bincount(clusters[codes[:, column] == code], minlength=number)
    return out


def resample_counts(
    codes: Codes,
    rng: np.random.Generator,
    resamples: int = 1000,
    *,
    clusters: npt.NDArray[np.int64] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> CountDraws:
    """Draws resamples of pairs with replacement (Efron's bootstrap) and counts every column on each of them.

    All columns see the same resamples, so values of two columns may be subtracted draw by draw.

    Args:
        codes: Confusion codes of shape (pairs, columns), -1 = excluded.
        rng: Source of randomness.
        resamples: How many, at least 1.
        clusters: Shape (pairs,): pairs of one cluster are drawn together; None = each pair by itself.
        chunk_bytes: Memory of one block of resamples.

    Raises:
        DeclarationError: Fewer than one resample, or clusters of another length than codes.
    """
    if resamples < 1:
        raise DeclarationError(f"resamples must be at least 1, not {resamples}")
    n, columns = codes.shape
    if clusters is not None and len(clusters) != n:
        raise DeclarationError(f"clusters holds {len(clusters)} rows, codes holds {n}")
    observed = confusion_counts(codes)
    if n == 0:
        nothing: Any = np.zeros((0, columns, 4), dtype=np.int64)
        zeros = np.zeros((resamples, columns, 4), dtype=np.int64)
        return CountDraws(observed, zeros, nothing, np.zeros(0, dtype=np.int64))
    if clusters is None:
        kinds, examples = _kinds_of_rows(codes)
        contributions, multiplicity = _one_hot(codes[examples]), np.bincount(kinds).astype(np.int64)
    else:
        contributions = _by_cluster(codes, np.unique(clusters, return_inverse=True)[1].astype(np.int64))
        kinds = np.arange(len(contributions))
        multiplicity = np.ones(len(contributions), dtype=np.int64)
    table = contributions.reshape(len(contributions), columns * 4).astype(np.float64)
    blocks = [weights @ table for weights in draw_weights(rng, resamples, kinds, multiplicity, chunk_bytes)]
    draws = np.rint(np.concatenate(blocks)).astype(np.int64).reshape(resamples, columns, 4)
    return CountDraws(observed, draws, contributions, multiplicity)
