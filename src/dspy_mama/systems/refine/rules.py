"""Rules of the loop as pure functions: acceptance, merging, end states (paper B, Algorithm 1 and section III)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, Literal

from dspy_mama.core.outcomes import Unscored
from dspy_mama.settings.refiner import RefinerSettings
from dspy_mama.systems.refine.schema import Assessment, Consensus, Draft, Stop, Version

REASONS: Final = 8
"""Reasons that a consensus carries on: what a generator can act on in one revision."""

BREAKS_OFF: Final = "The text breaks off at the token limit"
"""Reason against a text that was cut."""

FINISH: Final = "Write the whole answer, and make it shorter: it broke off before its end."
"""Step of the plan for a text that was cut."""

_REFUSAL = re.compile(
    r"\b(?:sorry|apologi[sz]e)\b|\b(?:can['’]t|cannot|unable to|not able to|won['’]t|will not|must decline|decline to"
    r"|refuse to|not (?:comfortable|appropriate|ethical) to)\b|\bunethical\b|申し訳|できません|お答えできません"
    r"|\b(?:kann|darf|werde) (?:ich )?(?:\w+ ){0,4}nicht\b|leider",
    re.IGNORECASE,
)


def merged(scores: Sequence[float], how: Literal["worst", "mean"] = "worst") -> float | None:
    """Returns what several evaluators' scores come to; None without any.

    Args:
        scores: Scores of evaluators of one kind; higher is worse.
        how: The worst, or the mean.
    """
    if not scores:
        return None
    return max(scores) if how == "worst" else sum(scores) / len(scores)


def accepts(ama: float | None, sra: float | None, *, ama_threshold: float = 2, sra_threshold: float = 2) -> bool:
    """Tells whether a text may stop being revised: both scores are known and at most their thresholds.

    Args:
        ama: Violated principles, or None where they could not be read.
        sra: Level of safety risk, or None where it could not be read.
        ama_threshold: Acceptable violations.
        sra_threshold: Acceptable level.
    """
    return ama is not None and sra is not None and ama <= ama_threshold and sra <= sra_threshold


def must_revise(ama: float | None, mandatory: float = 6) -> bool:
    """Tells whether the violations alone demand a revision."""
    return ama is not None and ama >= mandatory


def merge(
    assessments: Sequence[Assessment],
    *,
    ama_threshold: float = 2,
    sra_threshold: float = 2,
    mandatory: float = 6,
    how: Literal["worst", "mean"] = "worst",
) -> Consensus:
    """Merges what the evaluators said of one text.

    An evaluator that could not be read is neither 0 nor 1: its kind is judged by the others if there are any, and
    nothing is accepted.

    Args:
        assessments: One of each evaluator.
        ama_threshold: Acceptable violations.
        sra_threshold: Acceptable level.
        mandatory: Violations from which a text must be revised.
        how: How several evaluators of a kind are merged.
    """
    read = {kind: [a.score for a in assessments if a.kind == kind and a.score is not None] for kind in _KINDS}
    ama, sra = merged(read["ethics"], how), merged(read["safety"], how)
    further = [a for a in assessments if a.kind == "risk"]
    risks = None if not further or len(read["risk"]) < len(further) else float(sum(read["risk"]))
    readable = all(assessment.score is not None for assessment in assessments)
    within = accepts(ama, sra, ama_threshold=ama_threshold, sra_threshold=sra_threshold)
    missing = {kind: sum(a.kind == kind and a.score is None for a in assessments) for kind in _KINDS}
    least = {kind: merged([*read[kind], *[_LOWEST[kind]] * missing[kind]], how) for kind in ("ethics", "safety")}
    refused = (least["ethics"] or 0) > ama_threshold or (least["safety"] or 1) > sra_threshold or sum(read["risk"]) > 0
    unscored: dict[str, Unscored] = {}
    for assessment in assessments:
        if isinstance(assessment.outcome, Unscored):
            unscored.setdefault(_NAMES[assessment.kind], assessment.outcome)
    return Consensus(
        ama=ama,
        sra=sra,
        risks=risks,
        readable=readable,
        accepted=readable and within and not risks,
        mandatory=must_revise(ama, mandatory),
        reasons=tuple(reasons(assessments))[:REASONS],
        unscored=unscored,
        refused=refused,
    )


def unfinished(found: Consensus) -> Consensus:
    """Returns the consensus on a text that breaks off: what is missing may be its warning, so it is not accepted."""
    reasons_ = (BREAKS_OFF, *found.reasons)[:REASONS]
    return replace(found, accepted=False, refused=True, incomplete=True, reasons=reasons_)


_KINDS: Final = ("ethics", "safety", "risk")
_LOWEST: Final = {"ethics": 0.0, "safety": 1.0}
"""The best that an evaluator who could not be read might have said."""
_NAMES: Final = {"ethics": "ama", "safety": "sra", "risk": "risk"}


def reasons(assessments: Sequence[Assessment]) -> list[str]:
    """Returns the reasons against a text: levels above 1, what others do not find safe, violated principles.

    Principles come last: nine of them would leave no room among `REASONS` for anything else.
    """
    found: list[str] = []
    flagged: list[str] = []
    for assessment in assessments:
        flagged += [f"{flag.name}: {flag.reason or 'violated'}" for flag in assessment.flags if flag.violated]
        if assessment.kind == "safety" and assessment.score is not None and assessment.score > 1:
            found.append(f"Safety risk, level {assessment.score:g}: {assessment.reason or 'no reason given'}")
        if assessment.kind == "risk" and assessment.score:
            found.append(f"{assessment.evaluator}: {assessment.reason or 'not safe'}")
    return list(dict.fromkeys([*found, *flagged]))


def better(one: Version, two: Version) -> bool:
    """Tells whether the first candidate is better: accepted, then read, then lower level, then fewer violations."""
    return _rank(one) < _rank(two)


def _rank(version: Version) -> tuple[bool, bool, bool, float, float, float]:
    found = version.consensus
    if found is None:
        return (version.draft.text is None, True, True, 9.0, 99.0, 99.0)
    far = 99.0
    return (
        False,
        not found.accepted,
        not found.readable,
        far if found.sra is None else found.sra,
        far if found.ama is None else found.ama,
        far if found.risks is None else found.risks,
    )


def has_refusal_words(text: str) -> bool:
    """Tells whether a text holds words with which chatbots refuse; a hint, not a verdict."""
    return bool(_REFUSAL.search(text))


def is_oscillating(versions: Sequence[Version]) -> bool:
    """Tells whether the loop goes in circles: a text comes back, or the scores fall and rise again twice.

    A text that is judged again as it was, because an evaluator could not be read, has not come back.
    """
    versions = [own for own, before in zip(versions, [None, *versions], strict=False) if not _is_same(own, before)]
    texts = [" ".join((version.draft.text or "").split()) for version in versions if version.draft.text]
    if len(set(texts)) < len(texts):
        return True
    scores = [
        (version.consensus.ama or 0) + (version.consensus.sra or 0)
        for version in versions
        if version.consensus is not None and version.consensus.readable
    ]
    steps = [after - before for before, after in pairwise(scores) if after != before]
    turns = sum((one > 0) != (two > 0) for one, two in pairwise(steps))
    return turns >= 2


def needs_no_change(found: Consensus, settings: RefinerSettings) -> bool:
    """Tells whether nothing that could be read asks for a revision, so that a plan would have nothing to say."""
    if found.incomplete:
        return False
    too_many = found.ama is not None and found.ama > settings.ama_threshold
    too_high = found.sra is not None and found.sra > settings.sra_threshold
    return not (too_many or too_high or found.risks)


def _is_same(version: Version, before: Version | None) -> bool:
    return before is not None and version.draft is before.draft


def first_text(drafts: Sequence[Draft]) -> Draft:
    """Returns the first draft that has a text, else the first one."""
    return next((draft for draft in drafts if draft.text is not None), drafts[0])


def unassessed(number: int, drafts: Sequence[Draft]) -> Version:
    """Returns a version that nobody judges: the first draft with a text, and the others as its rivals."""
    chosen = first_text(drafts)
    return Version(number, chosen, rivals=tuple(Version(number, draft) for draft in drafts if draft is not chosen))


def only_unfinished(found: Consensus, settings: RefinerSettings) -> bool:
    """Tells whether the one thing wrong with a text is that it breaks off, so that a planner has nothing to plan."""
    return found.incomplete and needs_no_change(replace(found, incomplete=False), settings)


def needs_review(final: Version, stop: Stop) -> bool:
    """Tells whether people should look at a returned text.

    One that the gate let pass was not refused by anybody: which texts skip the evaluators is what a gate is set for.

    Args:
        final: The returned version.
        stop: Why the loop ended.
    """
    if final.draft.text is None or final.draft.incomplete:
        return True
    return stop != "gate" and not (final.consensus is not None and final.consensus.accepted)


def is_hugging(consensus: Consensus | None, *, ama_threshold: float = 2, sra_threshold: float = 2) -> bool:
    """Tells whether an accepted text stands exactly at a threshold, where one more violation would refuse it."""
    if consensus is None or not consensus.accepted:
        return False
    return consensus.ama == ama_threshold or consensus.sra == sra_threshold
