"""LMs by role, the embedded server, and predictors whose every field is read or named as missing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dspy_mama.lm.embedded import embedded_lm
    from dspy_mama.lm.predict import Reading, StructuredPredict
    from dspy_mama.lm.roles import build_lm, build_lms
    from dspy_mama.lm.usage import CallUsage

__all__ = ["CallUsage", "Reading", "StructuredPredict", "build_lm", "build_lms", "embedded_lm"]

_HOMES = {
    "embedded_lm": "embedded",
    "Reading": "predict",
    "StructuredPredict": "predict",
    "build_lm": "roles",
    "build_lms": "roles",
    "CallUsage": "usage",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
