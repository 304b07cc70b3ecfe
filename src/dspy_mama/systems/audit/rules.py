"""Decisions that need no LM: cuts, votes, and what goes to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from dspy_mama.core.cases import DOMAINS, Domain, Passage, Verdict
from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.systems.audit.schema import PhaseResult, RiskVerdict


def cut(verdict: RiskVerdict, threshold: float | None) -> RiskVerdict:
    """Returns the verdict with its label cut at a threshold: risky when p >= threshold.

    Without a threshold or a probability the label stays as it was written; a missing label stays missing.
    """
    if threshold is None or verdict.probability is None or not isinstance(verdict.outcome, Scored):
        return verdict
    return replace(verdict, outcome=Scored(verdict.probability >= threshold))


def name_of(verdict: RiskVerdict) -> Verdict:
    """Returns `risky`, `safe` or `undetermined`."""
    if verdict.risk is None:
        return "undetermined"
    return "risky" if verdict.risk else "safe"


def needs_review(final: PhaseResult) -> bool:
    """Tells whether a person must look at the pair: some domain is undetermined."""
    return any(final.verdict(domain).risk is None for domain in DOMAINS)


def vote(domain: Domain, votes: Sequence[RiskVerdict]) -> RiskVerdict:
    """Merges verdicts by majority, the comparator to reasoning.

    Only read labels vote. A tie goes to the mean probability (risky from 0.5 up) where every voter has one, else the
    domain is undetermined: no default favours a verdict.

    Args:
        domain: The domain.
        votes: Verdicts of earlier phases.

    Returns:
        The merged verdict; its probability is the mean of the known ones.
    """
    labels = [v.risk for v in votes if v.risk is not None]
    known = [v.probability for v in votes if v.risk is not None and v.probability is not None]
    mean = sum(known) / len(known) if known else None
    yes, no = labels.count(True), labels.count(False)
    counted = f"{yes} vote(s) for risky, {no} for safe"
    if yes != no:
        outcome: Scored[bool] | Unscored = Scored(yes > no)
    elif labels and mean is not None and len(known) == len(labels):
        outcome = Scored(mean >= 0.5)
        counted += f"; tie decided by the mean probability {mean:.2f}"
    else:
        kinds = [v.outcome.kind for v in votes if isinstance(v.outcome, Unscored)]
        kind = kinds[0] if kinds and not labels else "parse"
        outcome = Unscored(kind, f"{counted}: no majority" if labels else "no label to vote with")
    source = votes[0].probability_source if votes and mean is not None else "none"
    return RiskVerdict(domain, outcome, mean, source, counted)


def resolve_citations(numbers: Sequence[int], passages: Sequence[Passage]) -> tuple[tuple[str, ...], int]:
    """Turns cited numbers (from 1) into passage ids.

    Returns:
        Ids of passages that exist, each once, in the order cited; and the count of numbers that no passage has.
    """
    valid = [n for n in dict.fromkeys(numbers) if 1 <= n <= len(passages)]
    wrong = sum(1 for n in dict.fromkeys(numbers) if not 1 <= n <= len(passages))
    return tuple(passages[n - 1].id for n in valid), wrong


def evidence_text(passages: Sequence[Passage]) -> str:
    """Returns passages as the LM sees them, numbered from 1."""
    if not passages:
        return "No passage was found."
    return "\n\n".join(
        f"[{number}] {p.title}{f' / {p.section}' if p.section and p.section != p.title else ''}\n{p.text}"
        for number, p in enumerate(passages, 1)
    )


def _one_line(reason: str | None) -> str:
    """Returns a reason as one line: with line breaks, one that quotes the answer could forge another's verdict."""
    return " ".join((reason or "").split()) or "No reason was given."


def _line(label: str, verdict: RiskVerdict) -> str:
    if verdict.risk is None:
        return f"{label}: not available"
    by = f" by {verdict.role}" if verdict.role else ""
    cited = f" [relies on {len(verdict.citations)} passage(s)]" if verdict.citations else ""
    return f"{label}{by}: {name_of(verdict)}. {_one_line(verdict.reason)}{cited}"


def assessments_text(
    initial: PhaseResult | None,
    verification: PhaseResult | None,
    domains: Sequence[Domain] = DOMAINS,
    voices: Mapping[Domain, str] = MappingProxyType({}),
) -> str:
    """Returns labels and notes of MA1 and MA2, by domain, as MA3 sees them; a further voice has a line of its own."""
    lines = []
    for domain in domains:
        lines.append(f"{domain} domain")
        if initial is not None:
            lines.append(_line("- first assessment", initial.verdict(domain)))
        if verification is not None:
            lines.append(_line("- verification", verification.verdict(domain)))
        if domain in voices:
            lines.append(f"- {voices[domain]}")
    return "\n".join(lines)


def finding_text(verdict: RiskVerdict | None) -> str:
    """Returns MA1's finding for one domain as MA2 sees it."""
    if verdict is None or verdict.risk is None:
        return "No earlier finding is available. Judge by yourself."
    return f"{name_of(verdict)}. {_one_line(verdict.reason)}"


def collect(verdicts: Mapping[Domain, RiskVerdict]) -> tuple[RiskVerdict, RiskVerdict, RiskVerdict]:
    """Returns verdicts in the order of the domains."""
    medical, ethical, legal = (verdicts[domain] for domain in DOMAINS)
    return medical, ethical, legal
