"""The retrieval benchmark: every way of searching beside the others, on queries whose passages are known."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.resources import shipped
from dspy_mama.retrieval import Scope, cached_embedder
from dspy_mama.retrieval.budget import within_budget
from dspy_mama.retrieval.cache import CachedEmbedder
from dspy_mama.retrieval.commands import IndexCommands
from dspy_mama.retrieval.ranking import Ranking
from dspy_mama.retrieval.relevance import (
    DEPTH,
    BenchmarkQuery,
    Relevance,
    answers,
    load_queries,
    measure,
)
from dspy_mama.retrieval.retriever import load_index, make_ranking
from dspy_mama.retrieval.vectors import read_vectors, vector_file, write_vectors
from dspy_mama.settings import Settings
from dspy_mama.systems.audit.program import search_texts
from dspy_mama.wiring.retrieval_figures import ALL_LANGUAGES, Resampling, Task, differences, summary

_QUERIES: Final = ("retrieval", "queries.jsonl")

_WINNER: Final[dict[str, Any]] = {"search": "hybrid", "fusion": "scores", "centred": True, "glossary": ("shipped",)}

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "dense": {"search": "dense", "centred": False},
    "dense, centred": {"search": "dense", "centred": True},
    "lexical": {"search": "lexical", "glossary": ()},
    "lexical, glossary": {"search": "lexical", "glossary": ("shipped",)},
    "hybrid by ranks": {"search": "hybrid", "fusion": "ranks", "centred": False, "glossary": ()},
    "hybrid by ranks, centred": {"search": "hybrid", "fusion": "ranks", "centred": True, "glossary": ()},
    "hybrid by ranks, centred, glossary": {**_WINNER, "fusion": "ranks"},
    "hybrid by scores, centred": {**_WINNER, "glossary": ()},
    "hybrid by scores, centred, glossary": _WINNER,
    "+ diversity 0.3": {**_WINNER, "diversity": 0.3},
    "+ query's language only": {**_WINNER, "languages": "query"},
    "+ sources by domain": {
        **_WINNER,
        "sources": {
            "medical": ("encyclopedic", "guidance"),
            "ethical": ("ethics", "guidance"),
            "legal": ("law", "guidance"),
        },
    },
}
"""Ways of searching, by name; everything else stays as the settings say."""

FORMULATIONS: Final = ("both", "question", "answer", "claims")
"""What a query is made of; compared on those that have question and answer."""


class _Bench:
    """An index in memory and the tasks."""

    def __init__(self, settings: Settings, embedder: CachedEmbedder, queries: Sequence[BenchmarkQuery]) -> None:
        self.settings, self.embedder = settings, embedder
        commands = IndexCommands.of(settings.corpus, settings.embedder, settings.retriever)
        self.header, self.passages, self.vectors = load_index(settings.retriever, embedder, settings.corpus, commands)
        languages = (*sorted({passage.language for passage in self.passages}), ALL_LANGUAGES)
        tasks = (self._task(query, language) for query in queries for language in languages)
        self.tasks = [task for task in tasks if task is not None]

    def run(self, changes: Mapping[str, Any], formulation: str, tasks: Sequence[Task]) -> _Measured:
        """Returns the tasks' relevance, and the median milliseconds of a search once its query is embedded."""
        settings = dataclasses.replace(self.settings.retriever, **changes)
        rankings: dict[Any, Ranking] = {}
        rows: list[tuple[Task, Relevance]] = []
        seconds: list[float] = []
        for task in tasks:
            scope = _scope(task.query, task.language)
            if scope not in rankings:
                rankings[scope] = make_ranking(self.header, self.passages, self.vectors, settings, scope)
            ranking = rankings[scope]
            texts = _texts(task.query, formulation)
            vectors = [self.embedder.embed_query(text) for text in texts] if ranking.needs_vectors else []
            began = time.perf_counter()
            # Whole passages: the usual budget of tokens would cut what is measured.
            found = within_budget(ranking.ranked(texts, vectors)(task.query.domain), 10**6, DEPTH)
            seconds.append(time.perf_counter() - began)
            rows.append((task, measure(task.facts, found, task.good)))
        return rows, 1000 * statistics.median(seconds)

    def _task(self, query: BenchmarkQuery, language: str) -> Task | None:
        scope = _scope(query, language)
        pool = [passage for passage in self.passages if scope.holds(passage) and query.domain in passage.domains]
        facts = query.in_documents(frozenset(passage.document for passage in pool))
        return Task(query, language, facts, sum(answers(facts, p) for p in pool)) if facts else None


_Measured = tuple[list[tuple[Task, Relevance]], float]


def _scope(query: BenchmarkQuery, language: str) -> Scope:
    return Scope(query.jurisdictions, None, None if language == ALL_LANGUAGES else (language,))


def _texts(query: BenchmarkQuery, formulation: str) -> tuple[str, ...]:
    if query.question and query.answer:
        return search_texts(query.question, query.answer, formulation)
    return (query.text,)


def export_query_vectors(settings: Settings, queries: Path | None = None) -> Path:
    """Writes the vectors of all queries, however they are made, beside their file, and returns the path.

    Vectors of the same texts that lie there already are kept.

    Raises:
        DeclarationError: Queries or settings are at fault, or the file cannot be written.
    """
    path = queries or shipped("data", *_QUERIES)
    embedder = cached_embedder(settings.embedder, settings.retriever)
    try:
        texts = [text for query in load_queries(path) for kind in FORMULATIONS for text in _texts(query, kind)]
        target = vector_file(path.parent, settings.embedder.kind)
        embedder.cache.put(read_vectors(target, embedder.dimension))
        write_vectors(target, embedder, texts, "query")
    finally:
        embedder.cache.close()
    return target


def run_retrieval_bench(
    settings: Settings, queries: Path | None = None, progress: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Searches for every query in every way.

    Args:
        settings: Corpus, embedder and index; the index must be built.
        queries: Queries with their facts; None = those that ship with the project.
        progress: Called with the name of each option.

    Returns:
        Plain data: `options` and `formulations`, each a list of `name`, `changes`, `milliseconds` (median search
        after embedding), `pairs` (by `query language->document language`, `all` = the whole scope, as in use, and
        `cross-lingual`, pooled over every query in documents of the other language), `domains` (over `all`), `sets`
        (`pairs` of each set of queries, where there are several) and `behind` (by pair, what the chosen option has
        more, query by query), whose measures have `value` and `ci95` (percentile bootstrap over queries); `default`
        (name of the option that the settings choose, null if none), `queries`, `embedder`, `seed`, `resamples`.

    Raises:
        DeclarationError: Queries or settings are at fault, or there is no index.
        ExecutionError: The embedder failed.
    """
    path = queries or shipped("data", *_QUERIES)
    loaded = load_queries(path)
    resampling = Resampling(settings.experiment.seed, settings.experiment.resamples)
    embedder = cached_embedder(settings.embedder, settings.retriever)

    def measured(
        bench: _Bench, ways: Mapping[str, tuple[Mapping[str, Any], str]], tasks: Sequence[Task]
    ) -> list[dict[str, Any]]:
        found: dict[str, _Measured] = {}
        for name, (changes, kind) in ways.items():
            if progress is not None:
                progress(name)
            found[name] = bench.run(changes, kind, tasks)
        chosen = found.get(_default(settings) or "")
        return [
            {
                "name": name,
                "changes": dict(ways[name][0]),
                "query": ways[name][1],
                "milliseconds": milliseconds,
                **summary(rows, resampling),
                "behind": differences(chosen[0], rows, resampling) if chosen else {},
            }
            for name, (rows, milliseconds) in found.items()
        ]

    try:
        embedder.cache.put(read_vectors(vector_file(path.parent, settings.embedder.kind), embedder.dimension))
        bench = _Bench(settings, embedder, loaded)
        paired = [task for task in bench.tasks if task.query.question and task.query.answer]
        return {
            "options": measured(bench, {n: (c, settings.system.query) for n, c in OPTIONS.items()}, bench.tasks),
            "formulations": measured(bench, {kind: ({}, kind) for kind in FORMULATIONS}, paired) if paired else [],
            "default": _default(settings),
            "queries": len(loaded),
            "embedder": embedder.id,
            "seed": resampling.seed,
            "resamples": resampling.resamples,
        }
    finally:
        embedder.cache.close()


def _default(settings: Settings) -> str | None:
    for name, changes in OPTIONS.items():
        wanted = {"diversity": 0.0, "languages": "all", "sources": {}, **changes}
        if all(getattr(settings.retriever, field) == value for field, value in wanted.items()):
            return name
    return None
