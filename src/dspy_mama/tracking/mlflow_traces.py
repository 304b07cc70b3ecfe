"""A finished record as an MLflow trace: one root span for the pair, one span under it for each phase.

The trace is built after the fact and sent to the store by address. The fluent tracing API goes through a provider
that belongs to the whole process and to its one global tracking URI, which a library must not set.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
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


def build_trace(record: Mapping[str, Any], experiment_id: str, run_id: str) -> tuple[TraceInfo, list[Span]]:
    """Builds the trace of a record. Times of phases are laid end to end from their measured lengths.

    Args:
        record: A finished record; secrets are taken out.
        experiment_id: Experiment that keeps the trace.
        run_id: Run that the trace belongs to.
    """
    clean: dict[str, Any] = scrub(record)
    trace, root = secrets.randbits(128) | 1, secrets.randbits(64) | 1
    seconds = float(clean.get("seconds") or 0.0)
    end = time.time_ns()
    start = end - int(seconds * 1e9)
    inputs: dict[str, Any] = {name: clean[name] for name in _INPUTS if name in clean}
    outputs = {"verdicts": clean.get("verdicts"), "needs_review": clean.get("needs_review")}
    spans = [
        _span(
            "audit", trace, root, None, start, end, {"spanInputs": inputs, "spanOutputs": outputs, "spanType": "CHAIN"}
        )
    ]
    cursor = start
    for step in _STEPS:
        found = _output(clean, step)
        if found is not None:
            usage = (clean.get("usage") or {}).get(step) or {}
            until = min(end, cursor + int(float(usage.get("seconds") or 0.0) * 1e9))
            attributes = {"spanOutputs": found, "spanType": "AGENT", "usage": usage, **_tokens(usage)}
            spans.append(_span(step, trace, secrets.randbits(64) | 1, root, cursor, until, attributes))
            cursor = until
    return _info(trace, experiment_id, run_id, start, end, inputs, outputs), spans


def _output(record: Mapping[str, Any], step: str) -> Any:
    return record.get("routing") if step == "routing" else (record.get("phases") or {}).get(step)


def _tokens(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Returns token counts in MLflow's words; unknown counts stay away rather than become 0."""
    sent, new = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if sent is None or new is None:
        return {}
    return {"chat.tokenUsage": {"input_tokens": sent, "output_tokens": new, "total_tokens": sent + new}}


def _info(
    trace: int,
    experiment_id: str,
    run_id: str,
    start: int,
    end: int,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
) -> TraceInfo:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    return TraceInfo(
        trace_id=f"tr-{trace:032x}",
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=start // 1_000_000,
        execution_duration=(end - start) // 1_000_000,
        state=TraceState.OK,
        request_preview=_json(inputs)[:_PREVIEW],
        response_preview=_json(outputs)[:_PREVIEW],
        client_request_id=str(inputs.get("id", "")),
        trace_metadata={"mlflow.sourceRun": run_id, "mlflow.trace_schema.version": "3"},
        tags={"mlflow.traceName": "audit"},
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
