"""The seams between rooms: what a system needs from elsewhere, as protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dspy_mama.core.cases import Domain, Passage


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors. Safe to call from several threads."""

    @property
    def id(self) -> str:
        """Name and version; vectors of two ids are never mixed."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Returns unit vectors of shape (len(texts), dimension)."""

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Returns one unit vector of shape (dimension,)."""


@runtime_checkable
class Retriever(Protocol):
    """Finds evidence. One search serves all three domains of a pair."""

    async def asearch(
        self, query: str | Sequence[str], domains: Sequence[Domain]
    ) -> Mapping[Domain, tuple[Passage, ...]]:
        """Returns passages per domain, best first, within the token budget.

        Args:
            query: Text to search with, or several whose results are joined; untrusted.
            domains: Domains to search for.

        Raises:
            ExecutionError: The store could not be asked.
        """

    def describe(self) -> Mapping[str, Any]:
        """Returns what identifies it in a manifest (embedder, collection, counts, settings)."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Retriever:
        """Returns itself: optimisers copy programs, not indexes."""


@runtime_checkable
class Tracker(Protocol):
    """Where a run is logged. A failure to log never fails a run."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be logged, one line each."""

    def start(self, name: str, params: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        """Opens a run, or the earlier one of the same name, and returns its id ("" where the store is out of reach)."""

    def log_metrics(self, metrics: Mapping[str, float | None]) -> None:
        """Logs numbers; names are mapped to what the store accepts, None is counted and left out."""

    def log_artifacts(self, folder: str) -> None:
        """Stores every file of a folder."""

    def log_trace(self, record: Mapping[str, Any]) -> None:
        """Stores a finished record as a trace, if it belongs to the share that is traced. Safe in any thread."""

    def finish(self, status: str) -> None:
        """Closes the run with `FINISHED`, `FAILED` or `KILLED`."""


@runtime_checkable
class RiskScorer(Protocol):
    """Gives a probability of risk without an LM. Safe to call from several threads."""

    @property
    def id(self) -> str:
        """Name and hash of what decides its labels."""

    @property
    def description(self) -> str:
        """What it is, for an LM that weighs its word, in one clause."""

    def score(self, question: str, answer: str) -> Mapping[Domain, tuple[float, bool]]:
        """Returns per domain p(risky) in [0, 1] and the label at its own cut; domains that it does not know are absent.

        Raises:
            DeclarationError: Its model cannot be had.
        """

    def reason(self, domain: Domain, probability: float) -> str:
        """Returns what stands behind a score, its limits among it, for a person."""

    def __deepcopy__(self, memo: dict[int, Any]) -> RiskScorer:
        """Returns itself: optimisers copy programs, not models."""
