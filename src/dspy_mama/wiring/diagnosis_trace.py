"""A diagnosis as a trace: the discussion turn by turn, or the attempts of a single model, then the grades."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.systems.mac.knowledge_record import is_knowledge
from dspy_mama.tracking import TraceStep, TraceTree

_SAID = (
    "argument", "disagreement", "most_likely", "differentials", "tests", "agrees", "consensus", "accepted", "outcome",
    "error",
)  # fmt: skip
_WROTE = ("by", "text", "outcome", "error", "score", "feedback", "kept")
_TRIED = ("kind", "most_likely", "possible", "tests", "reasoning", "score", "feedback", "kept", "chosen", "outcome")


def diagnosis_layout(record: Mapping[str, Any]) -> TraceTree:
    """Lays out a record of a diagnosis: specialties, turns with the choice of their speakers, attempts, grades."""
    if is_knowledge(record):
        return _knowledge(record)
    inputs = {n: record[n] for n in ("id", "key", "source", "repeat", "stage", "method", "case") if n in record}
    standing = record.get("standing") or {}
    facts = {name: record[name] for name in ("stopped", "rounds", "gold")}
    outputs = {**record["final"], **facts, "warnings": standing.get("warnings") or []}
    steps = [*_specialties(record), *map(_turn, record["turns"]), *map(_attempt, record["attempts"])]
    usage = record["usage"]
    for role in ("concluder", "merger"):
        if usage.get(role):
            steps.append(TraceStep(role, record["final"], usage[role], "LLM"))
    return TraceTree(f"diagnosis {record['method']}", inputs, outputs, (*steps, *_grades(record)))


def _knowledge(record: Mapping[str, Any]) -> TraceTree:
    """Lays out what a method knows of a disease: each side with the drafts behind it, then the grades."""
    inputs = {n: record[n] for n in ("id", "key", "source", "repeat", "stage", "method", "case") if n in record}
    steps = [_side(name, entry) for name, entry in record["answers"].items()]
    outputs = {name: entry["text"] for name, entry in record["answers"].items()}
    return TraceTree(f"knowledge {record['method']}", inputs, outputs, (*steps, *_grades(record)))


def _side(name: str, entry: Mapping[str, Any]) -> TraceStep:
    """Returns a side of a disease; what its drafts did not cost is the critic's or the supervisor's."""
    drafts = tuple(
        TraceStep(draft["by"], {n: draft[n] for n in _WROTE if draft.get(n) is not None}, draft["usage"], "LLM")
        for draft in entry["drafts"]
    )
    told = {n: entry[n] for n in (*_WROTE, "disagreement") if entry.get(n) is not None}
    usage = entry["usage"] if not drafts else {}
    return TraceStep(
        name, told, usage, kind="CHAIN" if drafts else "LLM", seconds=entry["usage"]["seconds"], steps=drafts
    )


def _specialties(record: Mapping[str, Any]) -> list[TraceStep]:
    found = record.get("specialties")
    return [TraceStep("consultant", found, found.get("usage") or {}, "LLM")] if found else []


def _turn(turn: Mapping[str, Any]) -> TraceStep:
    selection = turn.get("selection") or {}
    chosen = []
    if selection.get("usage"):
        chosen.append(TraceStep("speaker selection", selection, selection["usage"], "LLM"))
    said = {name: turn[name] for name in _SAID if turn.get(name) is not None}
    step = TraceStep("turn", said, turn["usage"], "LLM", turn.get("seconds"))
    title = f"{turn['turn']}. {turn['speaker']}" + (f" ({turn['specialty']})" if turn.get("specialty") else "")
    return TraceStep(title, said, kind="AGENT", steps=(*chosen, step))


def _attempt(attempt: Mapping[str, Any]) -> TraceStep:
    tried = {name: attempt[name] for name in _TRIED if attempt.get(name) is not None}
    return TraceStep(f"{attempt['kind']} {attempt['number']}", tried, attempt["usage"], "LLM")


def _grades(record: Mapping[str, Any]) -> list[TraceStep]:
    grades = record.get("grades")
    if not grades:
        return []
    used = record["usage"].get("grader") or {}
    steps = tuple(TraceStep(unit, grade, kind="EVALUATOR", seconds=0.0) for unit, grade in grades.items())
    return [TraceStep("grader", {u: g["score"] for u, g in grades.items()}, used, "EVALUATOR", steps=steps)]
