"""Base of programs that are written once as async and are callable both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.event_loop import run_sync
from dspy_mama.lm.predict import StructuredPredict


class AsyncModule(dspy.Module):
    """A `dspy.Module` whose `forward` runs its `aforward`."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs `aforward` to its end, from sync code."""
        return run_sync(self.aforward(*args, **kwargs))

    async def aforward(self, *args: Any, **kwargs: Any) -> Any:
        """Carries out the program.

        Raises:
            NotImplementedError: The program does not say how.
        """
        raise NotImplementedError


def check_lms(lms: Mapping[str, Any], roles: Sequence[str]) -> None:
    """Refuses LMs for roles that do not exist, and names in place of LMs.

    Args:
        lms: LM by role.
        roles: Roles that there are; `default` is always one.

    Raises:
        DeclarationError: A role is unknown, or what is given for it is a name.
    """
    unknown = sorted(set(lms) - {*roles, "default"})
    if unknown:
        raise DeclarationError(f"unknown role(s) {unknown}; roles are {', '.join(roles)} and default")
    for role, lm in lms.items():
        if isinstance(lm, str):
            raise DeclarationError(f"lms[{role!r}] is the name {lm!r}, not an LM: give dspy.LM({lm!r})")


def bind_lms(program: Any, lms: Mapping[str, Any]) -> None:
    """Gives each `StructuredPredict` of a program the LM of its role, or `default`; others keep theirs."""
    for _, predictor in program.named_predictors():
        if isinstance(predictor, StructuredPredict):
            predictor.lm = lms.get(predictor.role, lms.get("default", predictor.lm))


def lm_of(predictor: Any) -> Any | None:
    """Returns the LM that a predictor would ask: its own, or DSPy's."""
    return getattr(predictor, "lm", None) or dspy.settings.lm


def at_temperature(lm: Any, temperature: float | None) -> dict[str, Any]:
    """Returns the call settings for a temperature; none for models that refuse one.

    Args:
        lm: The LM that will be asked, or None.
        temperature: 0 to 2; None = the LM's own.
    """
    from dspy_mama.lm.profile import is_reasoning_model

    if temperature is None or is_reasoning_model(str(getattr(lm, "model", ""))):
        return {}
    return {"temperature": temperature}
