"""How a role samples, in the form that its model takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.lm.module import lm_of
from dspy_mama.lm.predict import StructuredPredict
from dspy_mama.settings.refiner import SamplingSettings

NOTHING_BEFORE = "(nothing)"
"""What stands in a prompt where the question opens the conversation."""


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


def refused(predictor: StructuredPredict, sampling: SamplingSettings | None) -> bool:
    """Tells whether a role's sampling was asked for and its model does not take it."""
    return sampling not in (None, SamplingSettings()) and not call_settings(predictor, sampling)


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
