"""A refinement as a record: every version, every score with its reason, and why it was changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.core.chat_request import ChatRequest
from dspy_mama.core.ids import object_hash
from dspy_mama.core.record_texts import without_words
from dspy_mama.systems.refine.outcomes import missing_parts, outcomes
from dspy_mama.systems.refine.parts import category_part, final_part, gate_part, helpfulness_part, version_part
from dspy_mama.systems.refine.prediction import end_states, models_by_role, usage_by_role
from dspy_mama.systems.refine.schema import Refinement

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
        "gate": gate_part(refinement),
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
        "warnings": list(prediction.warnings),
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
