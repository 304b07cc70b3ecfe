"""An audit as one row of `records.jsonl`: plain data, nothing that the report has to guess."""

from __future__ import annotations

from typing import Any

from dspy_mama.core.cases import DOMAINS, PHASES, Passage, QAPair
from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.lm.usage import CallUsage
from dspy_mama.systems.audit.schema import PhaseResult, RiskVerdict, RoleAssignment

DIGITS = 6
"""Decimals of a probability in a record."""


def _passage(passage: Passage, cited: bool) -> dict[str, Any]:
    kept = ("id", "title", "document", "url", "language", "collection", "section", "accessed", "licence")
    score = None if passage.score is None else round(passage.score, DIGITS)
    return {**{name: getattr(passage, name) for name in kept}, "score": score, "cited": cited}


def verdict_record(verdict: RiskVerdict, *, verified: bool) -> dict[str, Any]:
    """Returns a verdict as plain data; raw text is kept only where there is no label."""
    missing = verdict.outcome if isinstance(verdict.outcome, Unscored) else None
    row: dict[str, Any] = {
        "outcome": missing.kind if missing else "scored",
        "risk": verdict.risk,
        "probability": None if verdict.probability is None else round(verdict.probability, DIGITS),
        "probability_source": verdict.probability_source,
        "reason": verdict.reason,
        "findings": verdict.findings,
        "error": missing.reason if missing else None,
        "raw": missing.raw if missing else None,
    }
    if verified:
        row |= {
            "role": verdict.role,
            "query": verdict.query,
            "passages": [_passage(p, p.id in verdict.citations) for p in verdict.passages],
            "citations": list(verdict.citations),
            "invalid_citations": verdict.invalid_citations,
        }
    return row


def _routing(roles: RoleAssignment) -> dict[str, Any]:
    outcome = roles.outcome
    return {
        "specialty": roles.specialty,
        "definition": roles.definition,
        "source": roles.source,
        "source_verified": roles.source_verified,
        "scope": None if roles.origin == "none" else "agnostic" if roles.origin == "agnostic" else "case",
        "origin": roles.origin,
        "outcome": outcome.kind if isinstance(outcome, Unscored) else "scored" if isinstance(outcome, Scored) else None,
    }


def audit_record(pair: QAPair, prediction: Any) -> dict[str, Any]:
    """Returns the record of an audited pair, without its key, repeat and seconds, which the runner knows."""
    phases: dict[str, PhaseResult] = prediction.phases
    roles: RoleAssignment = prediction.routing
    usage: dict[str, CallUsage] = {"routing": roles.usage} | {name: phases[name].usage for name in phases}
    models = {"router": roles.model} | {
        role: phases[name].model for role, name in zip(("assessor", "verifier", "judge"), PHASES, strict=True)
        if name in phases
    }  # fmt: skip
    return {
        "id": pair.id,
        "source": pair.source,
        "language": pair.language,
        "question": pair.question,
        "answer": pair.answer,
        "gold": {domain: pair.gold.get(domain) for domain in DOMAINS},
        "notes": dict(pair.notes),
        "routing": _routing(roles),
        "phases": {
            name: {d: verdict_record(phase.verdict(d), verified=name == "verification") for d in DOMAINS}
            for name, phase in phases.items()
        },
        "final_phase": prediction.final_phase,
        "verdicts": {domain: prediction[f"{domain}_verdict"] for domain in DOMAINS},
        "needs_review": prediction.needs_review,
        "usage": {name: used.to_dict() for name, used in usage.items()},
        "models": {role: model for role, model in models.items() if model},
    }
