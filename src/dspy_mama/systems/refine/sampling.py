"""How a role samples, in the form that its model takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from dspy_mama.lm.module import lm_of
from dspy_mama.lm.predict import StructuredPredict
from dspy_mama.settings.refiner import SamplingSettings


def call_settings(predictor: StructuredPredict, sampling: SamplingSettings | None) -> dict[str, Any]:
    """Returns what a call of this predictor sends along; empty where the LM's own settings hold.

    Reasoning models refuse temperature and nucleus mass, and their thinking counts as output: they keep their own.

    Args:
        predictor: Whose LM is asked.
        sampling: What was asked for; None = nothing.
    """
    from dspy_mama.lm.profile import is_reasoning_model

    if sampling is None or is_reasoning_model(str(getattr(lm_of(predictor), "model", ""))):
        return {}
    asked = {"temperature": sampling.temperature, "top_p": sampling.top_p, "max_tokens": sampling.max_tokens}
    return {name: value for name, value in asked.items() if value is not None}


def not_sent(predictors: Iterable[Any], sampling: Mapping[Any, SamplingSettings]) -> dict[str, dict[str, Any]]:
    """Returns by role what was asked for and is left out of its calls, because its model refuses it.

    Args:
        predictors: Those of a loop; others than `StructuredPredict` have no role.
        sampling: Sampling by role.
    """
    found: dict[str, dict[str, Any]] = {}
    for predictor in predictors:
        if isinstance(predictor, StructuredPredict):
            own = sampling_of(predictor.role, sampling, predictor.role.rsplit("_", 1)[0])
            asked = {name: value for name, value in asdict(own).items() if value is not None} if own else {}
            if asked and not call_settings(predictor, own):
                found[predictor.role] = asked
    return found


def sampling_of(
    role: str, sampling: Mapping[Any, SamplingSettings] | None, base: str | None = None
) -> SamplingSettings | None:
    """Returns the sampling of a role: its own, or that of all.

    Args:
        role: Role, such as `ethics`.
        sampling: Sampling by role, `default` for the rest.
        base: Role that a numbered one (`ethics_2`) stands for.
    """
    known = sampling or {}
    return known.get(role) or known.get(base or role) or known.get("default")


def numbered(role: str, count: int) -> list[str]:
    """Returns the roles of several that share one: `ethics`, or `ethics_1`, `ethics_2`, ..."""
    return [role] if count == 1 else [f"{role}_{number}" for number in range(1, count + 1)]
