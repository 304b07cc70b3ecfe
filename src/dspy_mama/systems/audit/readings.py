"""From a predictor's reading to verdicts."""

from __future__ import annotations

from typing import Any

from dspy_mama.core.cases import DOMAINS, Domain
from dspy_mama.core.outcomes import Outcome, Scored
from dspy_mama.lm.predict import Reading
from dspy_mama.systems.audit.schema import PhaseResult, RiskVerdict


def _label(reading: Reading, prediction: Any, name: str) -> tuple[Outcome[bool], float | None, str]:
    outcome = reading.outcomes[name]
    if not isinstance(outcome, Scored):
        return outcome, None, "none"
    if isinstance(outcome.value, bool):
        probability = reading.probabilities.get(name)
        return Scored(outcome.value), probability, "token" if probability is not None else "none"
    # A stated probability: the label is cut at the predictor's own threshold.
    return Scored(bool(prediction[name])), float(outcome.value), "stated"


def verdict_from(
    reading: Reading, prediction: Any, domain: Domain, *, risk: str, reason: str, findings: str | None = None
) -> RiskVerdict:
    """Returns one domain's verdict from the fields that hold it.

    Args:
        reading: What was read.
        prediction: The prediction that the reading belongs to.
        domain: The domain.
        risk: Field name of the label.
        reason: Field name of the reason.
        findings: Field name of the findings, where there is one.
    """
    outcome, probability, source = _label(reading, prediction, risk)
    return RiskVerdict(
        domain,
        outcome,
        probability,
        source,
        reading.value(reason),
        reading.value(findings) if findings else None,
    )


def phase_from(reading: Reading, prediction: Any) -> PhaseResult:
    """Returns a phase of which one reply holds all three domains."""
    medical, ethical, legal = (
        verdict_from(reading, prediction, d, risk=f"{d}_risk", reason=f"{d}_reason") for d in DOMAINS
    )
    return PhaseResult(medical, ethical, legal, reading.usage, reading.model)
