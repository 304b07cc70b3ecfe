"""Gold labels and predictions made anywhere, joined by id or by order into `Labels`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DOMAINS, DeclarationError, Domain
from dspy_mama.scoring.labels import KINDS, MISSING, Labels

THRESHOLD: Final = 0.5
"""Probability from which a prediction without a label counts as risky."""

_NOT_RUN: Final = KINDS.index("not_run")
_UNDETERMINED: Final = KINDS.index("undetermined")


class Answers(Protocol):
    """Labels of one file: what `datasets.read_labels` returns."""

    @property
    def name(self) -> str:
        """Where they come from, for messages."""

    @property
    def ids(self) -> tuple[str, ...] | None:
        """Id of each row, or None."""

    @property
    def repeats(self) -> npt.NDArray[np.int64]:
        """Repetition of each row."""

    @property
    def labels(self) -> Mapping[Domain, npt.NDArray[np.int8]]:
        """1 risky, 0 safe, -1 missing, by domain."""

    @property
    def probability(self) -> Mapping[Domain, npt.NDArray[np.float64]]:
        """Probability of risk, NaN where missing, by domain."""


@dataclass(frozen=True)
class Joined:
    """Labels, and what a reader of their score should know of the join.

    Attributes:
        labels: One row a gold row (and repetition).
        notes: What was left out, missing or derived, in words.
        without_predictions: Domains that no file predicts; they are not scored.
        unknown_ids: Predictions whose id has no gold row; they are left out.
        missing_rows: Gold rows without a prediction; they count as unscored.
    """

    labels: Labels
    notes: tuple[str, ...]
    without_predictions: tuple[Domain, ...]
    unknown_ids: int
    missing_rows: int


def join_predictions(
    gold: Sequence[Answers],
    predictions: Sequence[Answers],
    *,
    by_order: bool = False,
    threshold: float = THRESHOLD,
    clusters: Sequence[str] | None = None,
) -> Joined:
    """Joins gold labels and predictions.

    A gold row without a prediction is kept and counts as unscored; a prediction without a gold row is left out. Where a
    domain has only probabilities, its labels are `probability >= threshold`.

    Args:
        gold: One file, or one a domain.
        predictions: One file, or one a domain; together at most one label a domain.
        by_order: Match the n-th rows instead of ids.
        threshold: Cut for probabilities without labels, in [0, 1].
        clusters: Cluster of each row of the first gold file.

    Raises:
        DeclarationError: Ids are missing or do not meet, row counts differ, or a domain is given twice.
    """
    if not 0 <= threshold <= 1:
        raise DeclarationError(f"threshold must lie in [0, 1], not {threshold}")
    for files, what in ((gold, "gold labels"), (predictions, "predictions")):
        _refuse_doubles(files, what)
    base = gold[0]
    ids = base.ids or (predictions[0].ids if by_order else None)
    if ids is None and not by_order:
        raise DeclarationError(f"{base.name} has no id column; name it, or match by order (--by-order)")
    ids = ids or tuple(f"row {number + 1}" for number in range(len(base.repeats)))
    where = {} if by_order else {name: row for row, name in enumerate(ids)}
    if not by_order and len(where) < len(ids):
        raise DeclarationError(f"{base.name} holds the same id twice; gold ids must be unique")
    repeats = np.unique(np.concatenate([file.repeats for file in predictions]))
    n, rounds = len(ids), len(repeats)
    filled = _Columns(n * rounds)
    unknown, met = 0, np.zeros(n * rounds, dtype=np.bool_)
    for file in gold:
        rows, found = _rows(file, where, n, base.name, by_order)
        filled.set_gold(file, rows, found, n, rounds)
    for file in predictions:
        rows, found = _rows(file, where, n, base.name, by_order)
        unknown = max(unknown, int((~found).sum()))
        target = (np.searchsorted(repeats, file.repeats) * n + rows)[found]
        met[target] = True
        filled.set_predictions(file, target, found, threshold)
    return _finish(filled, ids, repeats, met, unknown, threshold, clusters)


def _refuse_doubles(files: Sequence[Answers], what: str) -> None:
    seen: dict[str, str] = {}
    for file in files:
        for domain in sorted({*file.labels, *file.probability}):
            if domain in seen:
                raise DeclarationError(f"{domain} {what} are given twice: {seen[domain]} and {file.name}")
            seen[domain] = file.name


def _rows(
    file: Answers, where: Mapping[str, int], n: int, gold: str, by_order: bool
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Returns the gold row of each row of a file, and which of them have one."""
    if by_order:
        if len(file.repeats) != n:
            raise DeclarationError(
                f"matching by order needs as many rows: {gold} has {n}, {file.name} has {len(file.repeats)}"
            )
        return np.arange(n), np.ones(n, dtype=np.bool_)
    if file.ids is None:
        raise DeclarationError(
            f"{file.name} has no id column; name it, or, if its {len(file.repeats)} rows stand in the order of {gold} "
            f"({n} rows), match by order (--by-order)"
        )
    rows = np.array([where.get(name, -1) for name in file.ids], dtype=np.intp)
    if not (rows >= 0).any():
        raise DeclarationError(
            f"{file.name} and {gold} share no id: {_few(file.ids)} against {_few(tuple(where))}; "
            "if the rows stand in the same order, match by order (--by-order)"
        )
    return rows, rows >= 0


def _few(ids: Sequence[str]) -> str:
    return ", ".join(map(repr, ids[:3])) + (", ..." if len(ids) > 3 else "")


class _Columns:
    """Arrays of the joined rows while they are filled."""

    def __init__(self, rows: int) -> None:
        shape = (rows, len(DOMAINS))
        self.gold = np.full(shape, MISSING, dtype=np.int8)
        self.predicted = np.full(shape, MISSING, dtype=np.int8)
        self.probability = np.full(shape, np.nan)
        self.kinds = np.full(shape, -1, dtype=np.int8)
        self.given: set[Domain] = set()
        self.cut: list[Domain] = []

    def set_gold(
        self, file: Answers, rows: npt.NDArray[np.intp], found: npt.NDArray[np.bool_], n: int, rounds: int
    ) -> None:
        for domain, labels in file.labels.items():
            column = np.full(n, MISSING, dtype=np.int8)
            column[rows[found]] = labels[found]
            self.gold[:, DOMAINS.index(domain)] = np.tile(column, rounds)

    def set_predictions(
        self, file: Answers, target: npt.NDArray[np.intp], found: npt.NDArray[np.bool_], threshold: float
    ) -> None:
        for position, domain in enumerate(DOMAINS):
            chances = file.probability.get(domain)
            said = file.labels.get(domain)
            if chances is None and said is None:
                continue
            self.given.add(domain)
            if said is None and chances is not None:
                self.cut.append(domain)
                said = np.where(np.isnan(chances), MISSING, chances >= threshold).astype(np.int8)
            if said is not None:
                self.kinds[:, position] = _NOT_RUN
                self.predicted[target, position] = said[found]
                self.kinds[target, position] = np.where(said[found] < 0, _UNDETERMINED, -1)
            if chances is not None:
                self.probability[target, position] = chances[found]


def _finish(
    filled: _Columns,
    ids: tuple[str, ...],
    repeats: npt.NDArray[np.int64],
    met: npt.NDArray[np.bool_],
    unknown: int,
    threshold: float,
    clusters: Sequence[str] | None,
) -> Joined:
    absent = tuple(domain for domain in DOMAINS if domain not in filled.given)
    for domain in absent:  # not asked, so neither right nor wrong nor missing
        filled.gold[:, DOMAINS.index(domain)] = MISSING
    rounds, missing = len(repeats), int((~met).sum())
    groups: Any = None
    if clusters is not None or rounds > 1:
        names = np.array(list(clusters if clusters is not None else ids) * rounds)
        groups = np.unique(names, return_inverse=True)[1].astype(np.int64)
    labels = Labels(
        ids * rounds,
        np.repeat(repeats, len(ids)),
        filled.gold,
        filled.predicted,
        filled.probability,
        filled.kinds,
        groups,
    )
    notes = [f"{domain}: no file predicts it, not scored (n = 0)" for domain in absent]
    if missing:
        notes.append(f"{missing} gold rows have no prediction; they count as unscored")
    if unknown:
        notes.append(f"{unknown} predictions have an id without a gold row and are left out")
    if filled.cut:
        notes.append(f"{', '.join(filled.cut)}: risky where the probability is at least {threshold:g}")
    return Joined(labels, tuple(notes), absent, unknown, missing)


def score_notes(joined: Joined, warnings: Sequence[str]) -> list[str]:
    """Returns the warnings of a score with the reasons that only the join knows."""
    own = [warning for warning in warnings if not any(warning.startswith(f"{d}:") for d in joined.without_predictions)]
    return [*joined.notes, *own]
