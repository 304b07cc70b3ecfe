"""What a benchmark of retrieval says: means over queries with their intervals, and paired differences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core.cases import DOMAINS
from dspy_mama.retrieval.relevance import CUTOFFS, BenchmarkQuery, Relevance, Statement
from dspy_mama.stats import percentile_interval

ALL_LANGUAGES: Final = "all"
CROSS_LINGUAL: Final = "cross-lingual"
"""Every query over the documents in the other language: all directions pooled."""
MEASURES: Final = (*(f"recall@{cutoff}" for cutoff in CUTOFFS), "mrr", "ndcg@10")

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Task:
    """One query in one language of documents.

    Attributes:
        query: The query.
        language: Language of the documents, or `all`.
        facts: What these documents state of the query's facts.
        good: Passages that state one.
    """

    query: BenchmarkQuery
    language: str
    facts: tuple[tuple[Statement, ...], ...]
    good: int

    @property
    def pairs(self) -> tuple[str, ...]:
        """The pairs of languages that it counts for."""
        own = f"{self.query.language}->{self.language}"
        return (own, CROSS_LINGUAL) if self.language not in (self.query.language, ALL_LANGUAGES) else (own,)


Rows = Sequence[tuple[Task, Relevance]]


@dataclass(frozen=True, slots=True)
class Resampling:
    """Bootstrap over queries: every option is resampled alike.

    Attributes:
        seed: Seed of the random numbers.
        resamples: How many.
    """

    seed: int
    resamples: int

    def means(self, values: Values) -> dict[str, Any]:
        """Returns n, and of each measure the mean with its 95 % percentile interval.

        Args:
            values: One row a query, one column a measure.
        """
        count = len(values)
        drawn = np.random.default_rng(self.seed).integers(0, count, (self.resamples, count))
        draws = values[drawn].mean(axis=1)
        shown: dict[str, Any] = {"n": count}
        for column, name in enumerate(MEASURES):
            interval = percentile_interval(draws[:, column]) if count > 1 else None
            ci95 = None if interval is None else [interval.low, interval.high]
            shown[name] = {"value": float(values[:, column].mean()), "ci95": ci95}
        return shown


def summary(rows: Rows, resampling: Resampling) -> dict[str, Any]:
    """Returns `pairs`, `domains`, and `sets` (of each set of queries, its `pairs`) where there are several."""
    figures = [(task, _row(relevance)) for task, relevance in rows]
    sets = sorted({task.query.set for task, _ in figures})
    domains: dict[str, list[Values]] = {domain: [] for domain in DOMAINS}
    for task, values in figures:
        if task.language == ALL_LANGUAGES:
            domains[task.query.domain].append(values)
    return {
        "pairs": _by_pair(figures, resampling),
        "domains": {domain: resampling.means(np.array(found)) for domain, found in domains.items() if found},
        "sets": {name: _by_pair([row for row in figures if row[0].query.set == name], resampling) for name in sets}
        if len(sets) > 1
        else {},
    }


def differences(rows: Rows, others: Rows, resampling: Resampling) -> dict[str, Any]:
    """Returns by pair how much better `rows` are than `others`, which hold the same tasks in the same order."""
    gains = [(task, _row(one) - _row(other)) for (task, one), (_, other) in zip(rows, others, strict=True)]
    return _by_pair(gains, resampling)


def _by_pair(rows: Iterable[tuple[Task, Values]], resampling: Resampling) -> dict[str, Any]:
    found: dict[str, list[Values]] = {}
    for task, values in rows:
        for pair in task.pairs:
            found.setdefault(pair, []).append(values)
    ordered = sorted(found, key=lambda pair: (pair == CROSS_LINGUAL, pair))
    return {pair: resampling.means(np.array(found[pair])) for pair in ordered}


def _row(relevance: Relevance) -> Values:
    return np.array([*relevance.recall, relevance.reciprocal_rank, relevance.ndcg])
