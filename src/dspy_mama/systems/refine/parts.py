"""Parts of a refinement's record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.lm.usage import CallUsage, total
from dspy_mama.systems.refine.outcomes import kind_of
from dspy_mama.systems.refine.schema import (
    Assessment,
    Consensus,
    Helpfulness,
    PromptCategory,
    Refinement,
    Version,
)


def _missing(outcome: Outcome[Any]) -> dict[str, Any]:
    missing = outcome if isinstance(outcome, Unscored) else None
    return {
        "outcome": kind_of(outcome),
        "error": missing.reason if missing else None,
        "raw": missing.raw if missing else None,
    }


def final_part(final: Version) -> dict[str, Any]:
    """Returns what a record says of the returned version."""
    found = final.consensus
    return {"version": final.number, "assessed": found is not None, "accepted": found.accepted if found else None}


def version_part(version: Version, versions: Sequence[Version], returned: bool) -> dict[str, Any]:
    """Returns what a record says of one version.

    Args:
        version: The version.
        versions: All of the refinement, among which an earlier one may have the same text.
        returned: Whether it is what the loop returned.
    """
    draft = version.draft
    earlier = [v for v in versions if v.number < version.number and v.draft is draft]
    return {
        "number": version.number,
        "stage": version.stage,
        "origin": draft.origin,
        "same_as": earlier[0].number if earlier else None,
        "generator": draft.generator,
        "model": draft.model,
        "text": draft.text,
        "truncated": draft.truncated,
        "incomplete": draft.incomplete,
        **_missing(draft.outcome),
        "assessments": [_assessment(one) for one in version.assessments],
        "consensus": _consensus(version.consensus),
        "plan": list(version.plan.steps) if version.plan else None,
        "plan_outcome": kind_of(version.plan.outcome) if version.plan else None,
        "returned": returned,
        "usage": _spent(version, paid=bool(earlier)).to_dict(),
        "rivals": [version_part(rival, versions, False) for rival in version.rivals],
    }


def _spent(version: Version, *, paid: bool) -> CallUsage:
    """Returns what a version cost: its writing (unless it is an earlier one's text), its assessments and its plan."""
    parts = [one.usage for one in version.assessments]
    parts += [] if paid else [version.draft.usage]
    parts += [version.plan.usage] if version.plan else []
    return total(parts)


def _assessment(one: Assessment) -> dict[str, Any]:
    return {
        "evaluator": one.evaluator,
        "kind": one.kind,
        "score": one.score,
        "reason": one.reason,
        "flags": [
            {"principle": f.principle, "name": f.name, "violated": f.violated, "reason": f.reason} for f in one.flags
        ],
        "evidence": [dict(passage) for passage in one.evidence],
        "model": one.model,
        "truncated": one.truncated,
        **_missing(one.outcome),
    }


def _consensus(found: Consensus | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "ama": found.ama,
        "sra": found.sra,
        "risks": found.risks,
        "readable": found.readable,
        "accepted": found.accepted,
        "refused": found.refused,
        "mandatory": found.mandatory,
        "reasons": list(found.reasons),
    }


def category_part(found: PromptCategory | None) -> dict[str, Any] | None:
    """Returns what a record says of the prompt's category."""
    if found is None:
        return None
    value = found.outcome.value if isinstance(found.outcome, Scored) else None
    return {"value": value, "reason": found.reason, **_missing(found.outcome)}


def gate_part(refinement: Refinement) -> dict[str, Any] | None:
    """Returns what a record says of the gate."""
    found = refinement.gate
    return None if found is None else {"entered": found.entered, "reason": found.reason, **_missing(found.outcome)}


def helpfulness_part(found: Helpfulness | None) -> dict[str, Any] | None:
    """Returns what a record says of whether the returned text helps."""
    if found is None:
        return None
    return {
        "refusal": found.refusal,
        "vague": found.vague,
        "refusal_words": found.refusal_words,
        "reason": found.reason,
        **_missing(found.outcome),
    }
