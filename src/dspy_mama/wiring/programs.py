"""Saved programs by path or by their address in MLflow."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dspy_mama.core.ports import Retriever
from dspy_mama.optimize import artifact_loading
from dspy_mama.optimize.artifact_loading import OnMismatch
from dspy_mama.optimize.diff import show_artifact
from dspy_mama.settings import TrackingSettings
from dspy_mama.tracking.mlflow_model import fetch_model, is_model_uri
from dspy_mama.tracking.mlflow_store import locate


def load_program(
    path: str | Path,
    *,
    lms: Mapping[str, Any] | None = None,
    retriever: Retriever | None = None,
    on_mismatch: OnMismatch = "refuse",
    allow_public: bool = False,
    tracking: TrackingSettings | None = None,
) -> Any:
    """Rebuilds a saved program from a file, a run folder or MLflow. No pickle is read, and no LM comes with it.

    Args:
        path: The file, a run folder that holds `program.json`, the folder of an MLflow model, or an address:
            `models:/NAME/VERSION`, `models:/NAME@ALIAS`, `models:/MODEL_ID`, `runs:/RUN/NAME`.
        lms: LM per role; a role without one takes `dspy.settings.lm`.
        retriever: Evidence; None = the shipped corpus, where the program reads any.
        on_mismatch: What to do where the file was changed after it was saved, or prompts, criteria or evidence of
            this version are not those it was made with: `refuse`, or `warn` and go on with the saved ones.
        allow_public: Let a program that was made with a local LM take `dspy.settings.lm` at a public address.
        tracking: The MLflow store of an address; None = `MLFLOW_TRACKING_URI`, else this project's default store.

    Raises:
        DeclarationError: There is no such program, it is damaged or does not match, or its LM was local and
            `dspy.settings.lm` is not.
    """
    options: dict[str, Any] = {
        "lms": lms,
        "retriever": retriever,
        "on_mismatch": on_mismatch,
        "allow_public": allow_public,
    }
    if not is_model_uri(path):
        return artifact_loading.load_program(path, **options)
    with tempfile.TemporaryDirectory(prefix="program-") as folder:
        return artifact_loading.load_program(fetch_program(str(path), tracking, Path(folder)), **options)


def fetch_program(uri: str, tracking: TrackingSettings | None, folder: Path) -> Path:
    """Downloads a program from MLflow into a folder and returns where its files are.

    Args:
        uri: An address as `load_program` takes it.
        tracking: The store; None = `MLFLOW_TRACKING_URI`, else this project's default store.
        folder: Where to put it.

    Raises:
        DeclarationError: The store has no such model.
    """
    settings = tracking or TrackingSettings(uri=os.environ.get("MLFLOW_TRACKING_URI") or None)
    return fetch_model(uri, locate(settings.uri, settings.root), folder)


def show_program(path: str | Path, tracking: TrackingSettings | None = None) -> tuple[str, dict[str, Any]]:
    """Returns a saved program for a terminal and as plain data: what it is, and what optimisation changed in it.

    Args:
        path: As `load_program` takes it.
        tracking: As `load_program` takes it.

    Raises:
        DeclarationError: There is no such program of this version.
    """
    if not is_model_uri(path):
        return show_artifact(path)
    with tempfile.TemporaryDirectory(prefix="program-") as folder:
        return show_artifact(fetch_program(str(path), tracking, Path(folder)))
