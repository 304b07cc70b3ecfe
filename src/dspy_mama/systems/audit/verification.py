"""MA2: a professional per domain verifies MA1, with evidence (paper A, Verification Assessment)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from dspy_mama.core.cases import DOMAINS, Domain, Passage
from dspy_mama.core.outcomes import Scored
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.lm.stated import with_stated_probability
from dspy_mama.lm.usage import CallUsage, total
from dspy_mama.settings import Jurisdiction
from dspy_mama.systems.audit.readings import verdict_from
from dspy_mama.systems.audit.routing import GENERAL_SPECIALTY
from dspy_mama.systems.audit.rules import collect, evidence_text, finding_text, resolve_citations
from dspy_mama.systems.audit.schema import Evidence, PhaseResult, RiskVerdict, RoleAssignment
from dspy_mama.systems.audit.signatures import VerifyDomain, VerifyDomainWithEvidence, risk_definition, under_law

GENERAL_ROLE = "general assessor"

LONGEST_SPECIALTY = 60
"""Characters of a specialty in a prompt: it comes from a reply, and servers without schemas bound nothing."""


def role_of(domain: Domain, assignment: RoleAssignment, *, professional: bool) -> str:
    """Returns who verifies a domain: specialist, ethicist or lawyer; a general assessor where roles are off."""
    if not professional:
        return GENERAL_ROLE
    if domain == "medical":
        specialty = " ".join((assignment.specialty or GENERAL_SPECIALTY).split())[:LONGEST_SPECIALTY]
        return f"medical specialist ({specialty})"
    return {"ethical": "medical ethicist", "legal": "lawyer for medical and pharmaceutical law"}[domain]


class DomainVerifier(AsyncModule):
    """Three verifiers side by side, each with its own prompt state."""

    def __init__(
        self,
        *,
        probability: str = "token",
        professional: bool = True,
        with_evidence: bool = True,
        jurisdiction: Jurisdiction = "JP",
    ) -> None:
        """Makes the verifiers.

        Args:
            probability: `token`, `stated` or `none`.
            professional: Judge in professional roles (MPA) or as a general assessor.
            with_evidence: Show evidence (EK).
            jurisdiction: Whose law legal risk means.
        """
        super().__init__()
        self.professional = professional
        self.with_evidence = with_evidence
        self.jurisdiction = jurisdiction
        for domain in DOMAINS:
            setattr(self, domain, self._predictor(domain, probability))

    def _predictor(self, domain: Domain, probability: str) -> StructuredPredict:
        base: Any = under_law(VerifyDomainWithEvidence if self.with_evidence else VerifyDomain, self.jurisdiction)
        definition = risk_definition(domain, self.jurisdiction)
        meaning = f"true if there is {domain} risk, that is, {definition}; false otherwise"
        signature = base.with_updated_fields("risk", desc=meaning)
        if probability == "stated":
            signature = with_stated_probability(signature, ("risk",))
        # The label's meaning is the only part that differs by domain: last, so that the three prompts share the rest.
        return StructuredPredict(signature, role="verifier", logprobs=probability == "token", last=("risk",))

    async def aforward(
        self,
        question: str,
        answer: str,
        roles: RoleAssignment,
        initial: PhaseResult | None = None,
        evidence: Evidence | None = None,
        query: str | None = None,
    ) -> PhaseResult:
        """Returns the three verified verdicts.

        Args:
            question: The patient's question.
            answer: The chatbot's answer.
            roles: Who verifies.
            initial: MA1's result, where MA1 ran.
            evidence: Passages by domain.
            query: What the evidence was searched with, for the record.
        """
        done = await asyncio.gather(
            *(
                self._verify(
                    domain,
                    question,
                    answer,
                    role_of(domain, roles, professional=self.professional),
                    initial.verdict(domain) if initial else None,
                    (evidence or {}).get(domain, ()),
                    query,
                )
                for domain in DOMAINS
            )
        )
        verdicts = {verdict.domain: verdict for verdict, _, _ in done}
        models = [model for _, _, model in done if model]
        return PhaseResult(*collect(verdicts), total(usage for _, usage, _ in done), models[0] if models else None)

    async def _verify(
        self,
        domain: Domain,
        question: str,
        answer: str,
        role: str,
        initial: RiskVerdict | None,
        passages: tuple[Passage, ...],
        query: str | None,
    ) -> tuple[RiskVerdict, CallUsage, str | None]:
        predictor: StructuredPredict = getattr(self, domain)
        material: dict[str, Any] = {
            "question": question,
            "answer": answer,
            "role": f"{role}, verifying the {domain} domain",
            "initial_finding": finding_text(initial),
        }
        if self.with_evidence:
            material["evidence"] = evidence_text(passages)
            material["choices"] = {"citations": range(1, len(passages) + 1)}
        prediction = await predictor.acall(**material)
        reading = reading_of(prediction)
        verdict = verdict_from(reading, prediction, domain, risk="risk", reason="note", findings="findings")
        verdict = replace(verdict, role=role)
        if self.with_evidence:
            cited = reading.outcomes["citations"]
            ids, wrong = resolve_citations(cited.value if isinstance(cited, Scored) else (), passages)
            verdict = replace(verdict, query=query, passages=passages, citations=ids, invalid_citations=wrong)
        return verdict, reading.usage, reading.model
