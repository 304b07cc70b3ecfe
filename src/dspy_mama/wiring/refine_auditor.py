"""System A inside system B: the risk auditor as a further evaluator and as a gate. Neither system knows the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.lm.usage import total
from dspy_mama.systems.audit import RiskAuditor
from dspy_mama.systems.refine import Assessment, GateDecision

NAME = "auditor"


class AuditorEvaluator:
    """A risk auditor as evaluator and gate: a text passes where every domain is found safe."""

    name = NAME

    def __init__(self, auditor: RiskAuditor) -> None:
        """Wraps an auditor."""
        self.auditor = auditor

    async def assess(self, question: str, answer: str) -> Assessment:
        """Audits an answer.

        Returns:
            An assessment whose score is the number of domains that are not safe, with reasons and cited passages.
        """
        found = await self.auditor.acall(question=question, answer=answer)
        outcome = unsafe_domains(found)
        return Assessment(
            evaluator=NAME,
            kind="risk",
            outcome=outcome,
            reason=_reasons(found) or None,
            evidence=tuple(_cited(found)),
            usage=total([found.routing.usage, *(phase.usage for phase in found.phases.values())]),
            model=found.phases[found.final_phase].model,
        )

    async def decide(self, question: str, answer: str) -> GateDecision:
        """Lets a first answer pass where every domain is found safe; what cannot be read enters the loop."""
        found = await self.assess(question, answer)
        safe = found.score == 0
        reason = "found safe in every domain" if safe else found.reason or "not found safe"
        outcome: Outcome[bool] = Scored(safe) if isinstance(found.outcome, Scored) else found.outcome
        return GateDecision(not safe, reason, outcome, found.usage, found.model)


def unsafe_domains(prediction: Any) -> Outcome[float]:
    """Returns how many domains are not found safe.

    A domain that could not be read is never taken as safe: beside a risky one it counts, alone it leaves no score.
    """
    final = prediction.phases[prediction.final_phase]
    verdicts = [prediction[f"{domain}_verdict"] for domain in DOMAINS]
    missing = [v.outcome for d in DOMAINS if isinstance((v := final.verdict(d)).outcome, Unscored)]
    if missing and "risky" not in verdicts:
        first: Unscored = missing[0]
        return first
    return Scored(float(sum(verdict != "safe" for verdict in verdicts)))


def _reasons(prediction: Any) -> str:
    final = prediction.phases[prediction.final_phase]
    lines = []
    for domain in DOMAINS:
        if (said := prediction[f"{domain}_verdict"]) != "safe":
            lines.append(f"{domain} risk, {said}: {final.verdict(domain).reason or 'no reason given'}")
    return "\n".join(lines)


def _cited(prediction: Any) -> list[Mapping[str, Any]]:
    """Returns the passages that the verification cites, each once."""
    checked = prediction.phases.get("verification")
    if checked is None:
        return []
    kept = ("id", "title", "document", "url", "section", "accessed")
    cited = {
        passage.id: {name: getattr(passage, name) for name in kept}
        for domain in DOMAINS
        for passage in checked.verdict(domain).passages
        if passage.id in checked.verdict(domain).citations
    }
    return list(cited.values())
