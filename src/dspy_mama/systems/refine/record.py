"""A refinement as a record: every version, every score with its reason, and why it was changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dspy_mama.core.chat_request import ChatRequest
from dspy_mama.core.ids import object_hash
from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.core.record_texts import without_words
from dspy_mama.lm.usage import CallUsage, total
from dspy_mama.systems.refine.outcomes import kind_of, missing_parts, outcomes
from dspy_mama.systems.refine.prediction import end_states, models_by_role, usage_by_role, warnings
from dspy_mama.systems.refine.schema import (
    Assessment,
    Consensus,
    Helpfulness,
    PromptCategory,
    Refinement,
    Version,
)

SYSTEM = "refine"
_KEY_LENGTH = 16
_WORDS = ("reason", "raw")
"""Fields of a part that hold words of the LM."""


def request_key(request: ChatRequest, repeat: int = 0) -> str:
    """Returns the hash by which a run knows a request: a changed text gives another key."""
    turns = [[turn.speaker, turn.text] for turn in request.history]
    content = {"id": request.id, "question": request.question, "answer": request.answer, "history": turns}
    return object_hash({**content, "repeat": repeat}, _KEY_LENGTH)


def request_identity(request: ChatRequest, repeat: int, store_text: bool) -> dict[str, Any]:
    """Returns the part of a record that comes from the request itself."""
    texts: dict[str, Any] = {
        "question": request.question,
        "history": [{"speaker": turn.speaker, "text": turn.text} for turn in request.history],
    }
    return {
        "id": request.id,
        "key": request_key(request, repeat),
        "system": SYSTEM,
        "source": request.source,
        "language": request.language,
        "repeat": repeat,
        "principle": request.principle,
        "given_answer": request.answer is not None,
        **(texts if store_text else {}),
    }


def failed_request(request: ChatRequest, error: str, repeat: int, store_text: bool) -> dict[str, Any]:
    """Returns the record of a request whose loop failed: `infra`, so that a resumed run tries it again.

    Args:
        request: The request.
        error: What went wrong, in one line.
        repeat: 0-based index of the repeat.
        store_text: Keep the texts.
    """
    return {
        **request_identity(request, repeat, store_text),
        "versions": [],
        "iterations": 0,
        "converged": None,
        "stopped": "generation",
        "final": None,
        "needs_review": True,
        "end_states": {},
        "warnings": [],
        "error": error,
        "outcomes": {"ama": "infra", "sra": "infra"},
        "usage": {},
        "models": {},
    }


def refine_record(request: ChatRequest, prediction: Any) -> dict[str, Any]:
    """Returns the record of a refined answer.

    Args:
        request: The request.
        prediction: What `SafetyRefiner` gave for it.
    """
    refinement: Refinement = prediction.refinement
    settings, criteria = prediction.settings, prediction.criteria
    final = refinement.final
    return {
        **request_identity(request, 0, store_text=True),
        "criteria": criteria.describe(),
        "principles": {principle.id: principle.name for principle in criteria.principles},
        "category": category_part(refinement.category),
        "gate": _gate(refinement),
        "paper_mode": not settings.final_check,
        "max_iterations": settings.max_iterations,
        "thresholds": {"ama": settings.ama_threshold, "sra": settings.sra_threshold, "mandatory": settings.mandatory},
        "versions": [version_part(version, refinement.versions, final is version) for version in refinement.versions],
        "iterations": refinement.iterations,
        "converged": refinement.converged,
        "stopped": refinement.stopped,
        "final": final_part(final),
        "needs_review": bool(prediction.needs_review),
        "helpfulness": helpfulness_part(refinement.helpfulness),
        "end_states": end_states(refinement, settings),
        "warnings": warnings(refinement),
        "outcomes": outcomes(refinement),
        **missing_parts(refinement),
        "sampling_not_sent": {role: dict(own) for role, own in refinement.not_sent.items()},
        "usage": {role: usage.to_dict() for role, usage in usage_by_role(refinement).items()},
        "models": dict(models_by_role(refinement)),
    }


def without_texts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record without the texts of patients and chatbots, and without reasons that may quote them."""
    kept = {name: value for name, value in record.items() if name not in ("question", "history")}
    kept["versions"] = [_bare(version) for version in record.get("versions") or ()]
    for name in ("category", "gate", "helpfulness"):
        if isinstance(kept.get(name), Mapping):
            kept[name] = without_words(kept[name], _WORDS)
    return kept


def _bare(version: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in without_words(version, _WORDS).items() if name not in ("text", "plan")}
    kept["assessments"] = [
        {
            **{name: value for name, value in without_words(one, _WORDS).items() if name != "evidence"},
            "flags": [{"principle": flag["principle"], "violated": flag["violated"]} for flag in one["flags"]],
        }
        for one in version["assessments"]
    ]
    if kept.get("consensus"):
        kept["consensus"] = {**kept["consensus"], "reasons": []}
    kept["rivals"] = [_bare(rival) for rival in version["rivals"]]
    return kept


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


def _gate(refinement: Refinement) -> dict[str, Any] | None:
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
