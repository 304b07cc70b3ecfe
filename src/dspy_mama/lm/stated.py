"""Stated probabilities through DSPy's decision types, kept in one file: they live in `dspy.experimental`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def with_stated_probability(signature: Any, labels: Sequence[str]) -> Any:
    """Returns the signature with the given boolean outputs as `Noul`: the LM states p(true), the label follows.

    Args:
        signature: A DSPy signature.
        labels: Names of boolean output fields.

    Returns:
        A new signature.
    """
    from dspy.experimental import Noul

    for name in labels:
        signature = signature.with_updated_fields(name, type_=Noul)
    return signature


def noul(signature: Any, fields: dict[str, Any], name: str, probability: float) -> Any:
    """Returns a stated probability as `Noul`, its value cut at the predictor's own threshold (0.5 by default)."""
    from dspy.adapters.decision_state import DecisionState

    state = DecisionState(signature, {k: v for k, v in fields.items() if k == name})
    threshold = state.fields[name]["threshold"]
    return state.types[name](
        value=probability >= threshold,
        probability=probability,
        confidence=abs(probability - threshold) / max(threshold, 1 - threshold),
    )


def note_evidence(predictor: Any, name: str, probability: float) -> None:
    """Hands a stated probability to whoever records them: ReAnchor fits its cuts to these.

    DSPy's own adapters do the same; this library's predictors read replies without one.

    Args:
        predictor: Who asked.
        name: The output field.
        probability: What was stated, in [0, 1].
    """
    import dspy

    recorder = dspy.settings.get("_decision_evidence")
    if recorder is not None:
        log, lock = recorder
        with lock:
            log.append((predictor, name, {"noul": probability}))
