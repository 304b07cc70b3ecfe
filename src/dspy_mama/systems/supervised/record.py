"""A baseline's predictions as rows of `records.jsonl`, so that they stand beside those of an LM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dspy_mama.core.cases import DOMAINS
from dspy_mama.systems.supervised.crossval import DomainFolds, OutOfFold

PHASE: Final = "classifier"
"""A classifier has one phase, which is none of the audit's."""
DIGITS: Final = 6


def baseline_records(found: OutOfFold) -> list[dict[str, Any]]:
    """Returns the record of each pair, in their order, without what the runner knows (key, repeat, seconds)."""
    return [_record(found, row) for row in range(len(found.pairs))]


def _record(found: OutOfFold, row: int) -> dict[str, Any]:
    pair = found.pairs[row]
    verdicts = {domain: _verdict(found.domains[domain], row, found.has_probabilities) for domain in DOMAINS}
    learnt = [domain for domain in DOMAINS if found.domains[domain].problem is None]
    return {
        "id": pair.id,
        "source": pair.source,
        "language": pair.language,
        "question": pair.question,
        "answer": pair.answer,
        "gold": {domain: pair.gold.get(domain) for domain in DOMAINS},
        "notes": dict(pair.notes),
        "routing": None,
        "phases": {PHASE: verdicts},
        "final_phase": PHASE,
        "verdicts": {domain: _name(verdict["risk"]) for domain, verdict in verdicts.items()},
        "needs_review": False,
        # A domain without gold has nothing to learn from: it is no failure of the run.
        "outcomes": dict.fromkeys(learnt, "scored"),
        "folds": {domain: int(found.domains[domain].fold[row]) for domain in learnt},
        "usage": {},
        "models": {"classifier": found.learner},
    }


def _name(risk: bool | None) -> str:
    return "undetermined" if risk is None else "risky" if risk else "safe"


def _verdict(domain: DomainFolds, row: int, has_probabilities: bool) -> dict[str, Any]:
    if domain.problem is not None:
        return _row("invalid_input", None, None, error=f"not trained: {domain.problem}")
    probability = round(float(domain.probability[row]), DIGITS) if has_probabilities else None
    return _row("scored", bool(domain.risky[row]), probability, reason=_reason(domain, int(domain.fold[row])))


def _row(outcome: str, risk: bool | None, probability: float | None, **texts: str) -> dict[str, Any]:
    return {
        "outcome": outcome,
        "risk": risk,
        "probability": probability,
        "probability_source": "none" if probability is None else "model",
        "reason": texts.get("reason"),
        "findings": None,
        "error": texts.get("error"),
        "raw": None,
    }


def _reason(domain: DomainFolds, fold: int) -> str:
    facts: Mapping[str, Any] = domain.facts[fold]
    chosen = ", ".join(f"{name} {value}" for name, value in facts.items() if isinstance(value, (int, float, str)))
    return f"Out of fold {fold + 1} of {domain.folds}: {chosen}."
