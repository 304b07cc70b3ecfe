"""Runs fetched back from an MLflow store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.settings import TrackingSettings
from dspy_mama.tracking.mlflow_store import locate, open_client

_RUN_ID: Final = re.compile(r"[0-9a-f]{32}")
_NEEDED: Final = ("spec.json", "records.jsonl")


def is_run_id(word: str) -> bool:
    """Tells whether a word looks like an MLflow run id."""
    return _RUN_ID.fullmatch(word) is not None


def fetch_run(run_id: str, settings: TrackingSettings, folder: Path) -> Path:
    """Downloads what a run's numbers are made from: its spec and its records.

    Args:
        run_id: MLflow's id of the run.
        settings: Where the store is.
        folder: Existing folder; a new one for the run is made in it.

    Returns:
        The run's folder.

    Raises:
        DeclarationError: The store has no such run, or the run holds no records.
    """
    target = folder / run_id
    target.mkdir(exist_ok=True)
    location = locate(settings.uri, settings.root)
    try:
        client = open_client(location)
        client.get_run(run_id)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DeclarationError(
            f"MLflow run {run_id} cannot be had from {location.uri}: {reason} (name the store with tracking.uri=...)"
        ) from error
    for name in _NEEDED:
        try:
            client.download_artifacts(run_id, name, str(target))
        except Exception as error:
            raise DeclarationError(
                f"MLflow run {run_id} holds no {name}: it was not logged by this library, or its artifacts are gone"
            ) from error
    return target
