"""MA1: one LM in three roles labels every domain (paper A, Initial Assessment)."""

from __future__ import annotations

from dspy_mama.core.cases import DOMAINS
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.lm.stated import with_stated_probability
from dspy_mama.settings import Jurisdiction
from dspy_mama.systems.audit.readings import phase_from
from dspy_mama.systems.audit.rules import evidence_text
from dspy_mama.systems.audit.schema import Evidence, PhaseResult
from dspy_mama.systems.audit.signatures import AssessInitialRisk, AssessWithEvidence, under_law

LABELS = tuple(f"{domain}_risk" for domain in DOMAINS)


class InitialAssessor(AsyncModule):
    """Labels medical, ethical and legal risk in one call; the benchmark and the input of MA2."""

    def __init__(
        self, *, probability: str = "token", with_evidence: bool = False, jurisdiction: Jurisdiction = "JP"
    ) -> None:
        """Makes the assessor.

        Args:
            probability: `token`, `stated` or `none`.
            with_evidence: Show evidence in this phase (only the `ek` ablation does).
            jurisdiction: Whose law legal risk means.
        """
        super().__init__()
        signature = under_law(AssessWithEvidence if with_evidence else AssessInitialRisk, jurisdiction)
        if probability == "stated":
            signature = with_stated_probability(signature, LABELS)
        self.with_evidence = with_evidence
        self.assess = StructuredPredict(signature, role="assessor", logprobs=probability == "token")

    async def aforward(self, question: str, answer: str, evidence: Evidence | None = None) -> PhaseResult:
        """Returns the three verdicts.

        Args:
            question: The patient's question.
            answer: The chatbot's answer.
            evidence: Passages by domain, where this phase sees any.
        """
        shown = None
        if self.with_evidence:
            passages = {p.id: p for domain in DOMAINS for p in (evidence or {}).get(domain, ())}
            shown = evidence_text(list(passages.values()))
        prediction = await self.assess.acall(question=question, answer=answer, evidence=shown)
        return phase_from(reading_of(prediction), prediction)
