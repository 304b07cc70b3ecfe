"""A finished record as an MLflow trace: one root span for the item, spans under it for its steps.

The trace is built after the fact and sent to the store by address. The fluent tracing API goes through a provider
that belongs to the whole process and to its one global tracking URI, which a library must not set.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dspy_mama.core.ids import content_hash
from dspy_mama.tracking.scrub import scrub

if TYPE_CHECKING:
    from mlflow.entities import Span, TraceInfo

_STEPS: Final = ("routing", "initial", "verification", "consensus")
_INPUTS: Final = ("id", "key", "source", "language", "repeat", "question", "answer")
_PREVIEW: Final = 1000


def is_sampled(key: str, rate: float) -> bool:
    """Tells whether a record is traced: decided by its key, so that a resumed run decides alike.

    Args:
        key: The record's key.
        rate: Share of records, 0 to 1.
    """
    return int(content_hash(key, 8), 16) < rate * 16**8


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step of a finished record, as a span.

    Attributes:
        name: Name of the span.
        outputs: What the step gave, as plain data.
        usage: Its LM calls (`calls`, `prompt_tokens`, `completion_tokens`, `seconds`, ...), or empty.
        kind: MLflow's span type, such as `AGENT`, `LLM`, `EVALUATOR`, `CHAIN`.
        seconds: How long it took; None = what `usage` says.
        steps: Steps inside it.
    """

    name: str
    outputs: Any
    usage: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "AGENT"
    seconds: float | None = None
    steps: tuple[TraceStep, ...] = ()

    @property
    def length(self) -> float:
        """Seconds of the span: stated, or measured in its usage, or those of the steps inside it."""
        own = self.seconds if self.seconds is not None else self.usage.get("seconds")
        return float(own) if own is not None else sum(step.length for step in self.steps)


@dataclass(frozen=True, slots=True)
class TraceTree:
    """A finished record as a trace shows it.

    Attributes:
        name: Name of the trace.
        inputs: What went in.
        outputs: What came out.
        steps: The steps in between, in order.
    """

    name: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    steps: tuple[TraceStep, ...]


TraceLayout = Callable[[Mapping[str, Any]], TraceTree]
"""Turns a finished record into the tree that is shown."""


def audit_layout(record: Mapping[str, Any]) -> TraceTree:
    """Lays out a record of the audit: routing and phases under the pair."""
    usage = record.get("usage") or {}
    found = {step: _output(record, step) for step in _STEPS}
    steps = (
        TraceStep(step, output, usage.get(step) or {}, seconds=float((usage.get(step) or {}).get("seconds") or 0.0))
        for step, output in found.items()
        if output is not None
    )
    inputs = {name: record[name] for name in _INPUTS if name in record}
    outputs = {"verdicts": record.get("verdicts"), "needs_review": record.get("needs_review")}
    return TraceTree("audit", inputs, outputs, tuple(steps))


def build_trace(
    record: Mapping[str, Any], experiment_id: str, run_id: str, layout: TraceLayout = audit_layout
) -> tuple[TraceInfo, list[Span]]:
    """Builds the trace of a record. Times of steps are laid end to end from their measured lengths.

    Args:
        record: A finished record; secrets are taken out.
        experiment_id: Experiment that keeps the trace.
        run_id: Run that the trace belongs to.
        layout: How the record is shown.
    """
    clean: dict[str, Any] = scrub(record)
    tree = layout(clean)
    trace, root = secrets.randbits(128) | 1, secrets.randbits(64) | 1
    end = time.time_ns()
    start = end - int(float(clean.get("seconds") or 0.0) * 1e9)
    attributes = {"spanInputs": tree.inputs, "spanOutputs": tree.outputs, "spanType": "CHAIN"}
    spans = [_span(tree.name, trace, root, None, start, end, attributes)]
    spans += _spans(tree.steps, trace, root, start, end)
    return _info(trace, experiment_id, run_id, start, end, tree), spans


def _spans(steps: Sequence[TraceStep], trace: int, parent: int, start: int, end: int) -> list[Span]:
    spans, cursor = [], start
    for step in steps:
        own = secrets.randbits(64) | 1
        until = min(end, cursor + int(step.length * 1e9))
        attributes = {"spanOutputs": step.outputs, "spanType": step.kind, "usage": step.usage, **_tokens(step.usage)}
        spans.append(_span(step.name, trace, own, parent, cursor, until, attributes))
        spans += _spans(step.steps, trace, own, cursor, until)
        cursor = until
    return spans


def _output(record: Mapping[str, Any], step: str) -> Any:
    return record.get("routing") if step == "routing" else (record.get("phases") or {}).get(step)


def _tokens(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Returns token counts in MLflow's words; unknown counts stay away rather than become 0."""
    sent, new = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if sent is None or new is None:
        return {}
    return {"chat.tokenUsage": {"input_tokens": sent, "output_tokens": new, "total_tokens": sent + new}}


def _info(trace: int, experiment_id: str, run_id: str, start: int, end: int, tree: TraceTree) -> TraceInfo:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    return TraceInfo(
        trace_id=f"tr-{trace:032x}",
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=start // 1_000_000,
        execution_duration=(end - start) // 1_000_000,
        state=TraceState.OK,
        request_preview=_json(tree.inputs)[:_PREVIEW],
        response_preview=_json(tree.outputs)[:_PREVIEW],
        client_request_id=str(tree.inputs.get("id", "")),
        trace_metadata={"mlflow.sourceRun": run_id, "mlflow.trace_schema.version": "3"},
        tags={"mlflow.traceName": tree.name},
    )


def _span(
    name: str, trace: int, span: int, parent: int | None, start: int, end: int, attributes: Mapping[str, Any]
) -> Span:
    from mlflow.entities import Span
    from mlflow.tracing.utils import build_otel_context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Status, StatusCode

    values = {"traceRequestId": f"tr-{trace:032x}", **attributes}
    return Span(
        ReadableSpan(
            name=name,
            context=build_otel_context(trace, span),
            parent=build_otel_context(trace, parent) if parent else None,
            start_time=start,
            end_time=end,
            attributes={f"mlflow.{key}": _json(value) for key, value in values.items()},
            status=Status(StatusCode.OK),
            resource=Resource.get_empty(),
        )
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
