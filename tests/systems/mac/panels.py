"""Scripted panels that the tests share."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from dspy_mama.systems.mac import DiagnosisPanel
from scripted import scripted_lm, system_of, user_of

CASE = "A girl of six with burning feet."

_SIGNS = {
    "doctor": "You are one of the doctors",
    "supervisor": "You are the panel's supervisor",
    "concluder": "The discussion is over",
    "speaker": "You lead the discussion",
    "consultant": "senior consultant",
}


def role_of(request: Any) -> str:
    system = system_of(request)
    return next((role for role, sign in _SIGNS.items() if sign in system), "other")


def speaks(request: Any) -> str:
    """Who a doctor's prompt says that it is."""
    return user_of(request).split("[[ ## you ## ]]\n")[1].split("\n")[0].split(",")[0]


def doctor(disease: str = "Fabry disease", agrees: bool = False, **more: Any) -> dict[str, Any]:
    said = {"argument": f"burning feet point to {disease}", "most_likely": disease}
    return {**said, "differentials": ["Gaucher disease"], "tests": ["enzyme"], "agrees": agrees, **more}


def supervisor(consensus: Any = False, following: Any = "Doctor 1", **more: Any) -> dict[str, Any]:
    said = {"disagreement": "none", "most_likely": "Fabry disease", "differentials": ["Fabry", "Gaucher disease"]}
    return {**said, "tests": ["enzyme"], "consensus": consensus, "next_speaker": following, **more}


CONCLUSION = {
    "argument": "the enzyme",
    "most_likely": "Fabry disease",
    "differentials": ["Gaucher disease", "fabry"],
    "tests": ["enzyme", "biopsy"],
}


def script(**roles: Any) -> Callable[[Any], Any]:
    """A script by role: a value for every call, a list of values in turn (the last one repeats), or a function."""
    defaults = {"doctor": doctor(), "supervisor": supervisor(), "concluder": CONCLUSION, "speaker": None}
    turns = {
        role: itertools.chain(given, itertools.repeat(given[-1])) if isinstance(given, list) else given
        for role, given in {**defaults, **roles}.items()
    }

    def reply(request: Any) -> Any:
        given = turns[role_of(request)]
        if callable(given):
            return given(request)
        given = next(given) if isinstance(given, itertools.chain) else given
        return {"next_speaker": given} if role_of(request) == "speaker" else given

    return reply


def panel(doctors: int = 2, lm: Any = None, *, roles: dict[str, Any] | None = None, **settings: Any) -> Any:
    """A panel whose every role has the same scripted LM."""
    lm = lm or scripted_lm(script(**(roles or {})))
    made = DiagnosisPanel(doctors, lms={"default": lm}, **settings)
    made.lm = lm
    return made


def asked(lm: Any) -> list[str]:
    """Roles in the order in which they were asked."""
    return [role_of(request) for request in lm.requests]


def said(prediction: Any) -> list[str]:
    """Speakers in the order of their turns."""
    return [turn.speaker for turn in prediction.diagnosis.discussion.turns]
