"""MA3: conflicts between MA1 and MA2 are resolved by reasoning, not by votes (paper A, Final Assessment)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from dspy_mama.core.cases import DOMAINS, Domain
from dspy_mama.core.ports import RiskScorer
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.lm.stated import with_stated_probability
from dspy_mama.settings import Jurisdiction
from dspy_mama.systems.audit.ordering import ordered
from dspy_mama.systems.audit.readings import phase_from
from dspy_mama.systems.audit.rules import assessments_text, collect, evidence_text, vote
from dspy_mama.systems.audit.schema import PhaseResult
from dspy_mama.systems.audit.signatures import (
    ReachConsensus,
    ReachConsensusAlone,
    ReachConsensusEnhanced,
    ReachConsensusEnhancedFromPassages,
    ReachConsensusFromPassages,
    under_law,
)

PROMPTS: Final[dict[str, tuple[Any, Any]]] = {
    "base": (ReachConsensus, ReachConsensusFromPassages),
    "enhanced": (ReachConsensusEnhanced, ReachConsensusEnhancedFromPassages),
}
"""Prompt without and with passages."""

LABELS = tuple(f"{domain}_risk" for domain in DOMAINS)


class ConsensusJudge(AsyncModule):
    """Reads labels and notes of the earlier phases and decides each domain."""

    def __init__(
        self,
        *,
        prompt: str = "enhanced",
        evidence: str = "notes",
        probability: str = "token",
        with_verification: bool = True,
        order_seed: int | None = None,
        jurisdiction: Jurisdiction = "JP",
        voice: RiskScorer | None = None,
    ) -> None:
        """Makes the judge.

        Args:
            prompt: `base` or `enhanced`; without MA2 a simplified prompt takes its place.
            evidence: `notes` shows MA2's notes only (the paper); `topk` shows MA2's passages instead of its notes;
                `hybrid` shows both.
            probability: `token`, `stated` or `none`.
            with_verification: Whether MA2 runs before it.
            order_seed: Seed of the order in which the domains' assessments are listed; None = as everywhere.
            jurisdiction: Whose law legal risk means.
            voice: A trained head whose probabilities are shown beside the assessments; None = no such line.
        """
        super().__init__()
        self.voice = voice
        self.evidence = evidence if with_verification else "notes"
        self.order_seed = order_seed
        notes, passages = PROMPTS[prompt]
        signature: Any = notes if self.evidence == "notes" else passages
        if not with_verification:
            signature = ReachConsensusAlone
        signature = under_law(signature, jurisdiction)
        if probability == "stated":
            signature = with_stated_probability(signature, LABELS)
        self.judge = StructuredPredict(signature, role="judge", logprobs=probability == "token")

    async def aforward(
        self, question: str, answer: str, initial: PhaseResult | None, verification: PhaseResult | None
    ) -> PhaseResult:
        """Returns the final verdicts."""
        notes = None if self.evidence == "topk" else verification
        passages = self._passages(verification) if self.evidence != "notes" else None
        domains = ordered(DOMAINS, self.order_seed, "assessments", question, answer)
        assessments = assessments_text(initial, notes, domains, await self._voices(question, answer))
        prediction = await self.judge.acall(
            question=question, answer=answer, assessments=assessments, evidence=passages
        )
        return phase_from(reading_of(prediction), prediction)

    async def _voices(self, question: str, answer: str) -> dict[Domain, str]:
        if self.voice is None:
            return {}
        scores = await asyncio.to_thread(self.voice.score, question, answer)
        said = self.voice.description
        return {domain: f"{said}: probability of risk {chance:.2f}" for domain, (chance, _) in scores.items()}

    @staticmethod
    def _passages(verification: PhaseResult | None) -> str:
        if verification is None:
            return evidence_text(())
        found = {p.id: p for domain in DOMAINS for p in verification.verdict(domain).passages}
        return evidence_text(list(found.values()))


class MajorityVote(AsyncModule):
    """Comparator to `ConsensusJudge`: counts the labels of MA1 and MA2, without an LM."""

    async def aforward(
        self, question: str, answer: str, initial: PhaseResult | None, verification: PhaseResult | None
    ) -> PhaseResult:
        """Returns the vote of the earlier phases."""
        phases = [phase for phase in (initial, verification) if phase is not None]
        return PhaseResult(*collect({d: vote(d, [phase.verdict(d) for phase in phases]) for d in DOMAINS}))
