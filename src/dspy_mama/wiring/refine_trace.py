"""A refined answer as a trace: every version with its assessments and its plan, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dspy_mama.tracking import TraceStep, TraceTree

Record = Mapping[str, Any]

_INPUTS: Final = ("id", "key", "source", "language", "repeat", "principle", "history", "question")
_OUTPUTS: Final = (
    *("converged", "iterations", "stopped", "final", "needs_review"),
    *("end_states", "warnings", "outcomes", "retry", "error"),
)
_ASSESSED: Final = ("score", "reason", "flags", "evidence", "outcome", "error", "model")


def refine_layout(record: Record) -> TraceTree:
    """Lays out a record of the evaluation loop."""
    steps = [step for name in ("category", "gate") if (step := _part(record, name)) is not None]
    steps += [_version(version) for version in record.get("versions") or ()]
    helpful = _part(record, "helpfulness")
    inputs = {name: record[name] for name in _INPUTS if name in record}
    outputs = {name: record[name] for name in _OUTPUTS if name in record} | {"answer": returned_text(record)}
    return TraceTree("refine", inputs, outputs, (*steps, *([helpful] if helpful else [])))


def returned_text(record: Record) -> str | None:
    """Returns the text that a record's loop returned, or None where there is none or it was not kept."""
    number = (record.get("final") or {}).get("version")
    found = [version.get("text") for version in record.get("versions") or () if version["number"] == number]
    return found[0] if found else None


_ROLES: Final = {"category": "classifier", "gate": "gate", "helpfulness": "helpfulness"}


def _part(record: Record, name: str) -> TraceStep | None:
    own = record.get(name)
    usage = (record.get("usage") or {}).get(_ROLES[name]) or {}
    return None if own is None else TraceStep(name, own, usage, kind="EVALUATOR")


def _version(version: Record) -> TraceStep:
    """Returns a version: what it says, who said what of it, and what had to change."""
    steps = [
        TraceStep(str(one["evaluator"]), {name: one.get(name) for name in _ASSESSED}, kind="EVALUATOR")
        for one in version.get("assessments") or ()
    ]
    if version.get("plan"):
        steps.append(TraceStep("plan", {"steps": version["plan"], "outcome": version.get("plan_outcome")}))
    kept = ("text", "origin", "stage", "model", "truncated", "outcome", "error", "consensus", "returned", "same_as")
    return TraceStep(
        f"version {version['number']}",
        {name: version.get(name) for name in kept},
        version.get("usage") or {},
        kind="CHAIN",
        steps=tuple(steps),
    )
