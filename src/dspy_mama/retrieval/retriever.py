"""Retrievers: Chroma's, and the honest null."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from dspy_mama.core.cases import DOMAINS, Domain, Passage
from dspy_mama.core.errors import ExecutionError, IndexStateError, MamaError
from dspy_mama.core.ports import Embedder, Retriever
from dspy_mama.core.wording import counted
from dspy_mama.retrieval.budget import within_budget
from dspy_mama.retrieval.build import cached_embedder
from dspy_mama.retrieval.chroma import ChromaStore, open_store
from dspy_mama.retrieval.chunking import is_cjk
from dspy_mama.retrieval.commands import IndexCommands
from dspy_mama.retrieval.embedding import Vectors
from dspy_mama.retrieval.ranking import Means, Ranking
from dspy_mama.retrieval.snapshot import CJK_LANGUAGES, Scope, Snapshot
from dspy_mama.retrieval.store import IndexHeader, check_header, collection_name, stamp_file
from dspy_mama.retrieval.way import way_of
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings

_SERVER_SECONDS: Final = 30.0
"""Seconds between two looks at a server's revision; a folder is looked at before every search."""

_SEARCH: Final = (
    "top_k",
    "evidence_tokens",
    "min_score",
    "search",
    "fusion",
    "lexical_weight",
    "glossary",
    "centred",
    "diversity",
    "languages",
    "sources",
)
"""Settings that change what a search finds; they belong in a manifest."""

logger = logging.getLogger(__name__)


class NullRetriever:
    """Finds nothing: the system without external knowledge."""

    async def asearch(
        self, query: str | Sequence[str], domains: Sequence[Domain]
    ) -> Mapping[Domain, tuple[Passage, ...]]:
        """Returns an empty tuple for every domain."""
        return dict.fromkeys(domains, ())

    def describe(self) -> Mapping[str, Any]:
        """Returns its kind."""
        return {"kind": "none"}

    def __deepcopy__(self, memo: dict[int, Any]) -> NullRetriever:
        """Returns itself."""
        return self


class ChromaRetriever:
    """Searches a Chroma collection exactly, by meaning, words or both, over a copy in memory.

    The copy follows the collection: when another build has finished, the next search reads it anew. Safe to use from
    several threads and event loops.
    """

    def __init__(
        self,
        settings: RetrieverSettings,
        embedder: Embedder,
        corpus: CorpusSettings,
        scope: Scope | None = None,
        *,
        commands: IndexCommands | None = None,
    ) -> None:
        """Reads the index, so that a missing or unfit one is known before the first token is spent.

        Args:
            settings: Where the index is, how many passages and how many tokens.
            embedder: Embeds queries; must be the one that made the index.
            corpus: The corpus that the index was made from.
            scope: Which passages may be found; None = all.
            commands: What messages tell to run; None = commands without the embedder, which settings need not describe.

        Raises:
            IndexStateError: There is no index, or it does not fit; the message names the command that repairs.
            DeclarationError: A Chroma server cannot be reached.
        """
        self._commands = commands or IndexCommands.of(corpus, None, settings)
        self.settings, self.embedder, self.corpus = settings, embedder, corpus
        self.scope = scope or Scope()
        self.collection = collection_name(settings, corpus, embedder.id)
        self._lock = threading.Lock()
        self._warned = False
        self._mark = self._change_mark()
        self._ranking = self._load(None)

    async def asearch(
        self, query: str | Sequence[str], domains: Sequence[Domain]
    ) -> Mapping[Domain, tuple[Passage, ...]]:
        """Returns passages per domain, best first, within the token budget; the query is embedded once, in a thread.

        Of several queries, such as the claims of an answer, each passage counts for the one that it answers best.

        Raises:
            ExecutionError: The embedder or the store could not be asked.
            IndexStateError: The index was replaced by one that does not fit.
        """
        return await asyncio.to_thread(self.search, query, domains)

    def search(
        self, query: str | Sequence[str], domains: Sequence[Domain] = DOMAINS
    ) -> dict[Domain, tuple[Passage, ...]]:
        """Returns what `asearch` returns, in the calling thread. A blank query finds nothing."""
        texts = [text for text in ([query] if isinstance(query, str) else query) if text.strip()]
        if not texts:
            return dict.fromkeys(domains, ())
        ranking = self._current()
        self._warn_of_language(texts[0], ranking.snapshot)
        vectors = [self._embed(text, ranking.snapshot) for text in texts] if ranking.needs_vectors else []
        ranked = ranking.ranked(texts, vectors)
        budget, limit = self.settings.evidence_tokens, self.settings.top_k
        return {domain: within_budget(ranked(domain), budget, limit) for domain in domains}

    def _embed(self, text: str, snapshot: Snapshot) -> Vectors:
        vector = self.embedder.embed_query(text)
        if vector.shape != (snapshot.header.dimension,):
            raise ExecutionError(
                f"query vector of shape {vector.shape}, index of {snapshot.header.dimension} dimensions"
            )
        return vector

    def describe(self) -> Mapping[str, Any]:
        """Returns what identifies index and search in a manifest; the glossary's hash is that of what searches."""
        ranking = self._ranking
        snapshot = ranking.snapshot
        search = dataclasses.asdict(self.settings)
        return {
            "kind": "chroma",
            "mode": self.settings.mode,
            "collection": self.collection,
            **{key: value for key, value in dataclasses.asdict(snapshot.header).items() if key != "state"},
            "chunks_in_scope": len(snapshot.passages),
            "scope": dataclasses.asdict(self.scope),
            **{name: search[name] for name in _SEARCH},
            "glossary_hash": ranking.glossary.id if ranking.glossary else None,
        }

    def way(self) -> dict[str, Any]:
        """Returns in which way it searches, as `way_of` tells it."""
        return way_of(self.settings, self._ranking.glossary)

    def __deepcopy__(self, memo: dict[int, Any]) -> ChromaRetriever:
        """Returns itself."""
        return self

    def _warn_of_language(self, query: str, snapshot: Snapshot) -> None:
        """Says once that a search must cross languages: few embedders do that well."""
        if self._warned or (snapshot.languages & CJK_LANGUAGES and snapshot.languages - CJK_LANGUAGES):
            return
        if snapshot.languages and is_cjk(query) != bool(snapshot.languages & CJK_LANGUAGES):
            self._warned = True
            logger.warning(
                "queries and documents differ in language (documents: %s); the embedder %s must be multilingual",
                ", ".join(sorted(snapshot.languages)),
                self.embedder.id,
            )

    def _current(self) -> Ranking:
        mark = self._change_mark()
        if mark == self._mark:
            return self._ranking
        with self._lock:
            if mark != self._mark:
                try:
                    self._ranking = self._load(self._ranking)
                except MamaError as error:
                    # A build that is under way, or a server that is away: the copy is whole and is still searched.
                    revision = self._ranking.snapshot.header.revision
                    logger.warning("search goes on with revision %s: %s", revision, error)
                self._mark = mark
            return self._ranking

    def _change_mark(self) -> str:
        """Returns something that differs once the index may have changed."""
        if self.settings.mode == "server":
            return str(time.monotonic() // _SERVER_SECONDS)
        try:
            return stamp_file(self.settings, self.collection).read_text(encoding="utf-8")
        except OSError:
            return ""

    def _load(self, known: Ranking | None) -> Ranking:
        with open_store(self.settings, self.collection, commands=self._commands) as store:
            header = _header_of(store, self.embedder, self.corpus)
            if known is not None and known.snapshot.header == header:
                return known
            passages, vectors = _whole(store, header)
        return make_ranking(header, passages, vectors, self.settings, self.scope)


def load_index(
    settings: RetrieverSettings, embedder: Embedder, corpus: CorpusSettings, commands: IndexCommands | None = None
) -> tuple[IndexHeader, list[Passage], Vectors]:
    """Returns an index: its header, its passages sorted by id, and their unit vectors.

    Raises:
        IndexStateError: There is no index, or it does not fit; the message names the command that repairs.
        DeclarationError: A Chroma server cannot be reached.
    """
    commands = commands or IndexCommands.of(corpus, None, settings)
    with open_store(settings, collection_name(settings, corpus, embedder.id), commands=commands) as store:
        header = _header_of(store, embedder, corpus)
        return header, *_whole(store, header)


def make_ranking(
    header: IndexHeader, passages: Sequence[Passage], vectors: Vectors, settings: RetrieverSettings, scope: Scope
) -> Ranking:
    """Returns an index made ready for a scope and a way of searching; what is out of scope still tells the means."""
    snapshot = Snapshot.of(header, passages, vectors, scope, settings.sources)
    return Ranking(snapshot, settings, Means.of(passages, vectors) if passages else None)


def _header_of(store: ChromaStore, embedder: Embedder, corpus: CorpusSettings) -> IndexHeader:
    if not store.exists():
        raise IndexStateError(f"there is no collection {store.name} at {store.where}: {store.commands.to_build}")
    return check_header(store.header(), store.name, embedder.id, embedder.dimension, corpus, store.commands)


def _whole(store: ChromaStore, header: IndexHeader) -> tuple[list[Passage], Vectors]:
    passages, vectors = store.load()
    if len(passages) != header.chunks:
        held = f"index {store.name} holds {len(passages)} of {counted(header.chunks, 'chunk')}"
        raise IndexStateError(f"{held}: {store.commands.to_build}")
    return passages, vectors


def open_retriever(
    retriever: RetrieverSettings,
    embedder: EmbedderSettings,
    corpus: CorpusSettings,
    *,
    context: Literal["none", "encyclopedic", "all"] = "all",
    jurisdictions: tuple[str, ...] | None = ("JP", "INT"),
    languages: tuple[str, ...] | None = None,
) -> Retriever:
    """Returns the retriever of a system.

    Args:
        retriever: Where the index is and how it is asked.
        embedder: Embedder of the index.
        corpus: Corpus of the index.
        context: What may be read: nothing, the encyclopedic collection, or all collections.
        jurisdictions: Whose documents may be read; None = all.
        languages: Languages that may be read; None = all.

    Raises:
        DeclarationError: The embedder cannot be had or a server cannot be reached.
        IndexStateError: There is no index, or it does not fit.
    """
    if context == "none":
        return NullRetriever()
    collections = ("encyclopedic",) if context == "encyclopedic" else None
    scope = Scope(jurisdictions, collections, languages)
    commands = IndexCommands.of(corpus, embedder, retriever)
    return ChromaRetriever(retriever, cached_embedder(embedder, retriever), corpus, scope, commands=commands)
