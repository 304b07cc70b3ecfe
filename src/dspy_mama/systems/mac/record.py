"""A diagnosis as one row of `records.jsonl`: plain data, nothing that the report has to guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from dspy_mama.core.disease_knowledge import KNOWLEDGE
from dspy_mama.core.ids import object_hash
from dspy_mama.core.outcomes import Outcome, Unscored
from dspy_mama.core.patient_case import PatientCase
from dspy_mama.core.record_texts import without_words
from dspy_mama.lm.usage import CallUsage
from dspy_mama.settings.panel import DiagnosisStage
from dspy_mama.systems.mac.accounts import diagnosis_of
from dspy_mama.systems.mac.schema import Conclusion, Diagnosis, Selection, SpecialtyChoice, Turn, outcome_name

_TEXTS: Final = ("argument", "disagreement", "reasoning", "feedback", "raw")


@dataclass(frozen=True, slots=True)
class DiagnosisItem:
    """What a run carries out: one case at one stage by one method.

    Attributes:
        case: The case; for the knowledge task a disease's name in place of one.
        stage: Its stage, or `knowledge`.
        method: `mac` or the name of a baseline.
    """

    case: PatientCase
    stage: DiagnosisStage
    method: str

    @property
    def id(self) -> str:
        """Case, stage and method, such as `mac-17/primary/mac`."""
        return f"{self.case.id}/{self.stage}/{self.method}"

    @property
    def text(self) -> str:
        """What is shown: the case at its stage, or the disease's name."""
        return self.case.text("primary" if self.stage == KNOWLEDGE else self.stage)


def item_key(item: DiagnosisItem, repeat: int = 0) -> str:
    """Returns the hash of what is asked: the case's id and text at that stage, stage, method and repeat."""
    return object_hash([item.case.id, item.text, item.stage, item.method, repeat], 32)


def identity_record(item: DiagnosisItem, repeat: int = 0) -> dict[str, Any]:
    """Returns the part of a record that comes from the item itself."""
    case = item.case
    return {
        "id": item.id,
        "key": item_key(item, repeat),
        "source": case.source,
        "repeat": repeat,
        "system": "diagnosis",
        "case_id": case.id,
        "stage": item.stage,
        "method": item.method,
        "case": item.text,
        "gold": {"diagnosis": case.diagnosis, "group": case.group},
        "leak": item.stage != KNOWLEDGE and case.leaks(item.stage),
        "notices": list(case.notices),
    }


def _missing(outcome: Outcome[Any]) -> dict[str, Any]:
    lost = outcome if isinstance(outcome, Unscored) else None
    reason, raw = (lost.reason, lost.raw) if lost else (None, None)
    return {"outcome": outcome_name(outcome), "error": reason, "raw": raw}


def _plain_usage(usage: Mapping[str, CallUsage]) -> dict[str, Any]:
    return {role: used.to_dict() for role, used in usage.items()}


def _selection(selection: Selection | None) -> dict[str, Any] | None:
    if selection is None:
        return None
    return {
        "by": selection.by,
        "asked": selection.asked,
        "outcome": None if selection.outcome is None else outcome_name(selection.outcome),
        "usage": selection.usage.to_dict() if selection.usage else None,
    }


def turn_record(turn: Turn) -> dict[str, Any]:
    """Returns a turn as plain data; raw text is kept only where it could not be read."""
    return {
        "turn": turn.number,
        "round": turn.round,
        "speaker": turn.speaker,
        "role": turn.role,
        "specialty": turn.specialty,
        **_missing(turn.outcome),
        "argument": turn.argument,
        "disagreement": turn.disagreement,
        "most_likely": turn.most_likely,
        "differentials": list(turn.differentials),
        "tests": list(turn.tests),
        "agrees": turn.agrees,
        "consensus": turn.consensus,
        "accepted": turn.accepted,
        "next_speaker": turn.next_speaker,
        "selection": _selection(turn.selection),
        "usage": turn.usage.to_dict(),
        "model": turn.model,
        "seconds": round(turn.usage.seconds, 4),
    }


def _specialties(choice: SpecialtyChoice | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    return {
        "asked": list(choice.asked),
        "chosen": list(choice.chosen),
        "dropped": [{"name": name, "why": why} for name, why in choice.dropped],
        "filled": list(choice.filled),
        "outcome": None if choice.outcome is None else outcome_name(choice.outcome),
        "usage": choice.usage.to_dict(),
    }


def _final(conclusion: Conclusion, most_likely: str | None) -> dict[str, Any]:
    return {
        **_missing(conclusion.outcome),
        "by": conclusion.by,
        "most_likely": most_likely,
        "possible": list(conclusion.possible),
        "tests": list(conclusion.tests),
        "argument": conclusion.argument,
    }


def diagnosis_record(item: DiagnosisItem, prediction: Any, *, repeat: int = 0) -> dict[str, Any]:
    """Returns the record of a diagnosis, without its seconds, which the runner knows.

    Args:
        item: What was asked.
        prediction: What the panel or a baseline gave.
        repeat: 0-based index of the repeat.
    """
    found: Diagnosis = diagnosis_of(prediction)
    talk = found.discussion
    return {
        **identity_record(item, repeat),
        "panel": dict(found.panel) if found.panel else None,
        "specialties": _specialties(found.specialties),
        "turns": [turn_record(turn) for turn in talk.turns],
        "attempts": [dict(attempt) for attempt in found.attempts],
        "rounds": found.rounds,
        "consensus_round": found.consensus_round,
        "stopped": talk.stopped,
        "final": _final(found.conclusion, prediction.most_likely),
        "cuts": [asdict(cut) for cut in talk.cuts],
        "outcomes": {"diagnosis": outcome_name(found.conclusion.outcome)},
        "usage": _plain_usage(found.usage),
        "usage_by_doctor": _plain_usage(found.usage_by_doctor),
        "models": dict(found.models),
        "notes": list(found.notes),
        "standing": found.standing.to_dict() if found.standing else None,
    }


def blank_record(item: DiagnosisItem, repeat: int = 0) -> dict[str, Any]:
    """Returns a record in which nobody has said or spent anything."""
    return {
        **identity_record(item, repeat),
        "panel": None,
        "specialties": None,
        "turns": [],
        "attempts": [],
        "rounds": 0,
        "consensus_round": None,
        "stopped": None,
        "cuts": [],
        "usage": {},
        "usage_by_doctor": {},
        "models": {},
        "notes": [],
        "standing": None,
    }


def failed_record(item: DiagnosisItem, error: BaseException, repeat: int = 0) -> dict[str, Any]:
    """Returns the record of a case whose work failed: its outcome is `infra`, so that a resumed run tries again."""
    final = {"outcome": "infra", "error": why_failed(error), "raw": None, "by": None}
    return {
        **blank_record(item, repeat),
        "final": {**final, "most_likely": None, "possible": [], "tests": [], "argument": None},
        "outcomes": {"diagnosis": "infra"},
    }


def why_failed(error: BaseException) -> str:
    """Returns an error in one line of at most 500 characters."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


def without_texts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record without the case's text and without free text that may quote it; diagnoses and tests stay."""
    kept = {name: value for name, value in record.items() if name != "case"}
    return {
        **kept,
        "turns": [without_words(turn, _TEXTS) for turn in record["turns"]],
        "attempts": [without_words(attempt, _TEXTS) for attempt in record["attempts"]],
        "final": without_words(record["final"], _TEXTS),
    }
