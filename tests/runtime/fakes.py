"""Pairs, records and a watcher for runs without an LM."""

from collections.abc import Mapping
from typing import Any

from dspy_mama.core import DOMAINS, QAPair


def pairs(count: int) -> list[QAPair]:
    return [QAPair(id=f"p{n}", question=f"question {n}", answer=f"answer {n}", source="fake") for n in range(count)]


def record(outcome: str = "scored", **more: Any) -> dict[str, Any]:
    verdict = {"outcome": outcome, "risk": True if outcome == "scored" else None, "error": None}
    return {"phases": {"consensus": {d: dict(verdict) for d in DOMAINS}}, "final_phase": "consensus", **more}


class Watcher:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.skipped = 0
        self.records: list[Mapping[str, Any]] = []
        self.messages: list[str] = []
        self.closed = False

    def start(self, total: int | None) -> None:
        self.total = total

    def skip(self) -> None:
        self.skipped += 1

    def add(self, record: Mapping[str, Any]) -> None:
        self.records.append(record)

    def say(self, message: str) -> None:
        self.messages.append(message)

    def close(self) -> None:
        self.closed = True
