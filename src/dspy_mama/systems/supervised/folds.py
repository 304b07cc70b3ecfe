"""Folds that keep a question together and every class present; nothing that is learnt may cross them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dspy_mama.core.cases import QAPair
from dspy_mama.core.ids import asked

Ints = npt.NDArray[np.int64]
Fold = tuple[Ints, Ints]
"""Rows to learn from, and rows held out."""


def question_groups(pairs: Sequence[QAPair], names: Sequence[str] | None = None) -> Ints:
    """Returns a group number per pair: pairs with the same question, or the same name, are never torn apart.

    Args:
        pairs: The pairs.
        names: A further name per pair, such as the id that a pair shares with its translation.
    """
    parent = list(range(len(pairs)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first: dict[tuple[str, str], int] = {}
    for row, pair in enumerate(pairs):
        keys = [("question", asked(pair.question))]
        keys += [("name", names[row])] if names is not None else []
        for key in keys:
            parent[root(row)] = root(first.setdefault(key, row))
    return np.unique([root(row) for row in range(len(pairs))], return_inverse=True)[1].astype(np.int64)


def possible_folds(labels: Ints, groups: Ints, wanted: int) -> int:
    """Returns how many folds can be made: at most as many as there are questions of the rarer class."""
    return min(wanted, *(len(set(groups[labels == label].tolist())) for label in (0, 1)))


def stratified_folds(labels: Ints, groups: Ints, folds: int, seed: int) -> list[Fold]:
    """Returns folds with about the same share of risky pairs, a group never in two of them.

    Args:
        labels: 1 risky, 0 safe; shape (n,).
        groups: Group of each row; shape (n,).
        folds: Number of folds, at most `possible_folds`.
        seed: Seed of the shuffle.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    splitter: Any = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    rows = np.zeros((len(labels), 1))
    return [
        (train.astype(np.int64), test.astype(np.int64))
        for train, test in splitter.split(rows, labels, groups)
        if len(test)
    ]
