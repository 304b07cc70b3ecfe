"""The verbs, by name; to add one, write a `Verb` and name its home here.

A verb's module is imported when the verb is used: `mama score` asks no LM and should not wait for what does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, cast

from dspy_mama.cli.verb import Verb

_HOMES: Final = {
    "demo": "evaluate:DEMO",
    "audit": "audit:AUDIT",
    "evaluate": "evaluate:EVALUATE",
    "refine": "refine:REFINE",
    "diagnose": "diagnose:DIAGNOSE",
    "score": "score:SCORE",
    "baseline": "baseline:BASELINE",
    "compare": "compare:COMPARE",
    "compile": "compile:COMPILE",
    "index": "index:INDEX",
    "evidence": "evidence:EVIDENCE",
    "report": "report:REPORT",
    "stability": "stability:STABILITY",
    "errors": "errors:ERRORS",
    "doctor": "doctor:DOCTOR",
}


class _Verbs(Mapping[str, Verb]):
    """Verbs that are imported when they are looked up."""

    def __getitem__(self, name: str) -> Verb:
        module, _, constant = _HOMES[name].partition(":")
        return cast("Verb", getattr(import_module(f"dspy_mama.cli.{module}"), constant))

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


VERBS: Final[Mapping[str, Verb]] = _Verbs()
