"""No tracking store: the run folder alone keeps the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class NullTracker:
    """Takes everything and keeps nothing."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Nothing can go wrong here."""
        return ()

    def start(self, name: str, params: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        """Returns no id: there is no store in which the run could be looked up."""
        return ""

    def log_metrics(self, metrics: Mapping[str, float | None]) -> None:
        """Does nothing."""

    def log_artifacts(self, folder: str) -> None:
        """Does nothing."""

    def log_trace(self, record: Mapping[str, Any]) -> None:
        """Does nothing."""

    def finish(self, status: str) -> None:
        """Does nothing."""
