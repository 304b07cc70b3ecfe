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
from dspy_mama.retrieval.budget import within_budget
from dspy_mama.retrieval.build import cached_embedder
from dspy_mama.retrieval.chroma import open_store
from dspy_mama.retrieval.chunking import is_cjk
from dspy_mama.retrieval.snapshot import Scope, Snapshot
from dspy_mama.retrieval.store import BUILD, check_header, collection_name, stamp_file
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings

_SERVER_SECONDS: Final = 30.0
"""Seconds between two looks at a server's revision; a folder is looked at before every search."""

_CJK_LANGUAGES: Final = frozenset({"ja", "zh", "ko"})

logger = logging.getLogger(__name__)


class NullRetriever:
    """Finds nothing: the system without external knowledge."""

    async def asearch(self, query: str, domains: Sequence[Domain]) -> Mapping[Domain, tuple[Passage, ...]]:
        """Returns an empty tuple for every domain."""
        return dict.fromkeys(domains, ())

    def describe(self) -> Mapping[str, Any]:
        """Returns its kind."""
        return {"kind": "none"}

    def __deepcopy__(self, memo: dict[int, Any]) -> NullRetriever:
        """Returns itself."""
        return self


class ChromaRetriever:
    """Searches a Chroma collection by cosine similarity, exactly, over a copy in memory.

    The copy follows the collection: when another build has finished, the next search reads it anew. Safe to use from
    several threads and event loops.
    """

    def __init__(
        self,
        settings: RetrieverSettings,
        embedder: Embedder,
        corpus: CorpusSettings,
        scope: Scope | None = None,
    ) -> None:
        """Reads the index, so that a missing or unfit one is known before the first token is spent.

        Args:
            settings: Where the index is, how many passages and how many tokens.
            embedder: Embeds queries; must be the one that made the index.
            corpus: The corpus that the index was made from.
            scope: Which passages may be found; None = all.

        Raises:
            IndexStateError: There is no index, or it does not fit; the message names the command that repairs.
            DeclarationError: A Chroma server cannot be reached.
        """
        self.settings, self.embedder, self.corpus = settings, embedder, corpus
        self.scope = scope or Scope()
        self.collection = collection_name(settings, corpus, embedder.id)
        self._lock = threading.Lock()
        self._warned = False
        self._mark = self._change_mark()
        self._snapshot = self._load(None)

    async def asearch(self, query: str, domains: Sequence[Domain]) -> Mapping[Domain, tuple[Passage, ...]]:
        """Returns passages per domain, best first, within the token budget; the query is embedded once, in a thread.

        Raises:
            ExecutionError: The embedder or the store could not be asked.
            IndexStateError: The index was replaced by one that does not fit.
        """
        return await asyncio.to_thread(self.search, query, domains)

    def search(self, query: str, domains: Sequence[Domain] = DOMAINS) -> dict[Domain, tuple[Passage, ...]]:
        """Returns what `asearch` returns, in the calling thread. A blank query finds nothing."""
        if not query.strip():
            return dict.fromkeys(domains, ())
        snapshot = self._current()
        self._warn_of_language(query, snapshot)
        vector = self.embedder.embed_query(query)
        if vector.shape != (snapshot.header.dimension,):
            raise ExecutionError(
                f"query vector of shape {vector.shape}, index of {snapshot.header.dimension} dimensions"
            )
        ranked = snapshot.ranked(vector, self.settings.min_score)
        budget, limit = self.settings.evidence_tokens, self.settings.top_k
        return {domain: within_budget(ranked(domain), budget, limit) for domain in domains}

    def describe(self) -> Mapping[str, Any]:
        """Returns what identifies index and search in a manifest."""
        snapshot = self._snapshot
        return {
            "kind": "chroma",
            "mode": self.settings.mode,
            "collection": self.collection,
            **{key: value for key, value in dataclasses.asdict(snapshot.header).items() if key != "state"},
            "chunks_in_scope": len(snapshot.passages),
            "scope": dataclasses.asdict(self.scope),
            "top_k": self.settings.top_k,
            "evidence_tokens": self.settings.evidence_tokens,
            "min_score": self.settings.min_score,
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> ChromaRetriever:
        """Returns itself."""
        return self

    def _warn_of_language(self, query: str, snapshot: Snapshot) -> None:
        """Says once that a search must cross languages: few embedders do that well."""
        if self._warned or (snapshot.languages & _CJK_LANGUAGES and snapshot.languages - _CJK_LANGUAGES):
            return
        if snapshot.languages and is_cjk(query) != bool(snapshot.languages & _CJK_LANGUAGES):
            self._warned = True
            logger.warning(
                "queries and documents differ in language (documents: %s); the embedder %s must be multilingual",
                ", ".join(sorted(snapshot.languages)),
                self.embedder.id,
            )

    def _current(self) -> Snapshot:
        mark = self._change_mark()
        if mark == self._mark:
            return self._snapshot
        with self._lock:
            if mark != self._mark:
                try:
                    self._snapshot = self._load(self._snapshot)
                except MamaError as error:
                    # A build that is under way, or a server that is away: the copy is whole and is still searched.
                    logger.warning("search goes on with revision %s: %s", self._snapshot.header.revision, error)
                self._mark = mark
            return self._snapshot

    def _change_mark(self) -> str:
        """Returns something that differs once the index may have changed."""
        if self.settings.mode == "server":
            return str(time.monotonic() // _SERVER_SECONDS)
        try:
            return stamp_file(self.settings, self.collection).read_text(encoding="utf-8")
        except OSError:
            return ""

    def _load(self, known: Snapshot | None) -> Snapshot:
        with open_store(self.settings, self.collection) as store:
            if not store.exists():
                raise IndexStateError(f"there is no collection {self.collection} at {store.where}: run `{BUILD}`")
            header = check_header(
                store.header(), self.collection, self.embedder.id, self.embedder.dimension, self.corpus
            )
            if known is not None and known.header == header:
                return known
            passages, vectors = store.load()
        if len(passages) != header.chunks:
            raise IndexStateError(
                f"index {self.collection} holds {len(passages)} of {header.chunks} chunks: run `{BUILD}`"
            )
        return Snapshot.of(header, passages, vectors, self.scope)


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
    return ChromaRetriever(retriever, cached_embedder(embedder, retriever), corpus, scope)
