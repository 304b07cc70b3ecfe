"""What every verb that carries out a run says of it in JSON."""

from __future__ import annotations

from typing import Any

from dspy_mama.wiring.lifecycle import StudyResult


def run_facts(result: StudyResult, seconds: str = "seconds") -> dict[str, Any]:
    """Returns where a run is and how it went, as plain data; its summary is for the caller to add.

    Args:
        result: The run.
        seconds: Name of its wall time, where the summary has seconds of its own.
    """
    return {
        "run": result.folder.name,
        "folder": str(result.folder),
        "mlflow_run": result.tracked or None,
        "resumed": result.resumed,
        "done": result.run.done,
        "failed": result.run.failed,
        "interrupted": result.run.interrupted,
        "server_requests": result.requests,
        seconds: round(result.run.seconds, 2),
        "exit_code": result.exit_code,
        "problems": list(result.problems),
    }
