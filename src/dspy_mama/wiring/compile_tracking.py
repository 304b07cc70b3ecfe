"""A compile run in MLflow: candidates as runs below it, and the program as a model."""

from __future__ import annotations

import logging
from pathlib import Path

from dspy_mama.optimize import CompileResult
from dspy_mama.optimize.files import compiled_state
from dspy_mama.optimize.result import candidate_row
from dspy_mama.settings import Settings
from dspy_mama.tracking.mlflow_nested import ChildRun, log_children
from dspy_mama.tracking.scrub import scrub_text
from dspy_mama.wiring.serving import log_model

logger = logging.getLogger(__name__)


def log_candidates(settings: Settings, parent: str, result: CompileResult, folder: Path) -> tuple[str, ...]:
    """Logs each candidate as a run below the compile run: its value on validation, and its program.

    Returns:
        What could not be logged.
    """
    children = []
    for number, candidate in enumerate(result.candidates):
        row = candidate_row(candidate, result.target)
        low, high = row["ci95"] or (None, None)
        name = f"validation/{result.target}"
        children.append(
            ChildRun(
                name=candidate.name,
                metrics={name: row["value"], f"{name}_low": low, f"{name}_high": high},
                tags={"candidate": str(number), "chosen": str(candidate is result.chosen).lower()},
                files=[folder / "candidates" / f"{number:02d}.{end}" for end in ("json", "diff.txt")],
            )
        )
    try:
        log_children(settings.tracking, parent, children)
    except Exception as error:  # noqa: BLE001 - tracking must never fail a run that was paid for
        return (scrub_text(f"candidates: {type(error).__name__}: {error}".splitlines()[0]),)
    return ()


def log_program(settings: Settings, run_id: str, result: CompileResult) -> tuple[str, tuple[str, ...]]:
    """Logs the program as a model that can be served, and registers it where a name is set.

    Returns:
        The model's address ("" where it could not be logged), and what could not be logged.
    """
    document = compiled_state(result, settings.optimizer)
    try:
        logged = log_model(settings, document, run_id, registered_name=settings.optimizer.register)
    except Exception as error:  # noqa: BLE001 - tracking must never fail a run that was paid for
        problem = scrub_text(f"the model: {type(error).__name__}: {error}".splitlines()[0])
        logger.warning("%s", problem)
        return "", (problem,)
    return logged.uri, ()
