"""What a method knows of a disease as one row of `records.jsonl`, beside the diagnoses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dspy_mama.core.disease_knowledge import DIMENSIONS, KNOWLEDGE
from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.core.record_texts import without_words
from dspy_mama.systems.mac.knowledge_schema import Draft, Entry, KnowledgeAnswer
from dspy_mama.systems.mac.record import DiagnosisItem, blank_record
from dspy_mama.systems.mac.schema import outcome_name

_TEXTS: Final = ("text", "disagreement", "feedback", "raw")


def _told(outcome: Outcome[str]) -> dict[str, Any]:
    lost = outcome if isinstance(outcome, Unscored) else None
    text = outcome.value if isinstance(outcome, Scored) else None
    reason, raw = (lost.reason, lost.raw) if lost else (None, None)
    return {"outcome": outcome_name(outcome), "text": text, "error": reason, "raw": raw}


def _draft(draft: Draft) -> dict[str, Any]:
    extra = {"by": draft.by, "score": draft.score, "feedback": draft.critique, "kept": draft.kept}
    return {**_told(draft.outcome), **extra, "usage": draft.usage.to_dict()}


def _entry(entry: Entry) -> dict[str, Any]:
    drafts = [_draft(draft) for draft in entry.drafts]
    extra = {"by": entry.by, "disagreement": entry.disagreement, "drafts": drafts}
    return {**_told(entry.outcome), **extra, "usage": entry.usage.to_dict()}


def knowledge_record(item: DiagnosisItem, answer: KnowledgeAnswer, *, repeat: int = 0) -> dict[str, Any]:
    """Returns the record of the knowledge task, without its seconds, which the runner knows.

    Args:
        item: What was asked: a disease in place of a case.
        answer: What a method said.
        repeat: 0-based index of the repeat.
    """
    return {
        **blank_record(item, repeat),
        "answers": {name: _entry(entry) for name, entry in answer.entries.items()},
        "outcomes": {f"{name}_entry": outcome_name(entry.outcome) for name, entry in answer.entries.items()},
        "usage": {role: used.to_dict() for role, used in answer.usage.items()},
        "usage_by_doctor": {name: used.to_dict() for name, used in answer.usage_by_doctor.items()},
        "models": dict(answer.models),
        "notes": list(answer.notes),
    }


def failed_knowledge(item: DiagnosisItem, why: str, repeat: int = 0) -> dict[str, Any]:
    """Returns the record of a disease whose work failed: every outcome is `infra`."""
    lost = _entry(Entry(Unscored("infra", why)))
    outcomes = {f"{name}_entry": "infra" for name in DIMENSIONS}
    return {**blank_record(item, repeat), "answers": dict.fromkeys(DIMENSIONS, lost), "outcomes": outcomes}


def is_knowledge(record: Mapping[str, Any]) -> bool:
    """Tells whether a record is one of the knowledge task."""
    return record.get("stage") == KNOWLEDGE


def answers_without_texts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record of the knowledge task without what LMs wrote; whether it could be read stays."""
    answers = {
        name: without_words(entry, _TEXTS) | {"drafts": [without_words(draft, _TEXTS) for draft in entry["drafts"]]}
        for name, entry in record["answers"].items()
    }
    return {**record, "answers": answers}
