"""The shipped corpus as a retriever that opens itself when it is first asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dspy_mama.core.cases import Domain, Passage
from dspy_mama.core.errors import IndexStateError
from dspy_mama.core.ports import Retriever
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings


class ShippedRetriever:
    """Searches the shipped corpus; its index is built from shipped vectors where there is none yet."""

    def __init__(
        self,
        *,
        context: Literal["none", "encyclopedic", "all"] = "all",
        jurisdictions: tuple[str, ...] | None = ("JP", "INT"),
        embedder: EmbedderSettings | None = None,
        retriever: RetrieverSettings | None = None,
    ) -> None:
        """Notes what to open; nothing is read yet.

        Args:
            context: What may be read.
            jurisdictions: Whose documents may be read; None = all.
            embedder: Embedder; None = the default one.
            retriever: Where the index is and how it is asked; None = the defaults.
        """
        self._scope: dict[str, Any] = {"context": context, "jurisdictions": jurisdictions}
        self._embedder = embedder or EmbedderSettings()
        self._settings = retriever or RetrieverSettings()
        self._lock = threading.Lock()
        self._opened: Retriever | None = None

    def _open(self) -> Retriever:
        from dspy_mama.retrieval.build import build_index
        from dspy_mama.retrieval.retriever import open_retriever

        with self._lock:
            if self._opened is None:
                corpus = CorpusSettings()
                try:
                    self._opened = open_retriever(self._settings, self._embedder, corpus, **self._scope)
                except IndexStateError:
                    build_index(corpus, self._embedder, self._settings)
                    self._opened = open_retriever(self._settings, self._embedder, corpus, **self._scope)
            return self._opened

    async def asearch(
        self, query: str | Sequence[str], domains: Sequence[Domain]
    ) -> Mapping[Domain, tuple[Passage, ...]]:
        """Returns passages per domain, best first, within the token budget.

        Raises:
            DeclarationError: The embedder is not installed.
            ExecutionError: The embedder or the store could not be asked.
        """
        opened = self._opened
        if opened is None:
            opened = await asyncio.to_thread(self._open)
        return await opened.asearch(query, domains)

    def describe(self) -> Mapping[str, Any]:
        """Returns what identifies it in a manifest; opens it."""
        return self._open().describe()

    def __deepcopy__(self, memo: dict[int, Any]) -> ShippedRetriever:
        """Returns itself."""
        return self
