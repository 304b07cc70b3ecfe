"""Repeats of the same calls as new samples: neither a cache nor a fixed seed may answer twice with one reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def for_repeat(lm: Any, repeat: int) -> Any:
    """Returns a copy of an LM whose calls are independent of those of every other repeat.

    DSPy's cache keeps replies apart by `rollout_id`; a fixed sampling seed is moved on, since with it every repeat
    would draw the same tokens. Gate, abilities and prices are shared with the original.

    Args:
        lm: A `dspy.LM`.
        repeat: 0-based index of the repeat; the same index finds the same cache entries again.
    """
    change: dict[str, Any] = {"rollout_id": repeat}
    seed = getattr(lm, "kwargs", {}).get("seed")
    if isinstance(seed, int):
        change["seed"] = seed + repeat
    copied = lm.copy(**change)
    if hasattr(copied, "_warned_zero_temp_rollout"):
        # DSPy warns that a rollout does nothing at temperature 0. It does here: calls carry an explicit request, whose
        # cache key holds the rollout at any temperature.
        copied._warned_zero_temp_rollout = True
    return copied


def lms_for_repeat(lms: Mapping[str, Any], repeat: int) -> dict[str, Any]:
    """Returns LMs by role for one repeat; roles that shared an LM share its copy."""
    copies = {id(lm): for_repeat(lm, repeat) for lm in lms.values()}
    return {role: copies[id(lm)] for role, lm in lms.items()}
