"""Saved programs by path or by their address in MLflow."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ports import Retriever
from dspy_mama.optimize import artifact_loading
from dspy_mama.optimize.artifact_loading import OnMismatch
from dspy_mama.optimize.diff import show_artifact
from dspy_mama.settings import Settings, TrackingSettings, to_mapping
from dspy_mama.systems.audit import RiskAuditor
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
    with _local(path, tracking) as file:
        return artifact_loading.load_program(
            file, lms=lms, retriever=retriever, on_mismatch=on_mismatch, allow_public=allow_public
        )


@contextlib.contextmanager
def _local(path: str | Path, tracking: TrackingSettings | None) -> Iterator[Path]:
    """Gives a program's files, fetched from MLflow where they are there; messages keep the name that was given."""
    if not is_model_uri(path):
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="program-") as folder:
        fetched = fetch_program(str(path), tracking, Path(folder))
        try:
            yield fetched
        except DeclarationError as error:
            named = str(error).replace(str(artifact_loading.program_file(fetched)), str(path))
            raise DeclarationError(named.replace(str(fetched), str(path))) from error


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


def saved_program(settings: Settings, retriever: Retriever, lms: Mapping[str, Any]) -> RiskAuditor:
    """Returns the saved program that a run takes.

    Args:
        settings: The run; `system.program` names the program.
        retriever: Evidence.
        lms: LMs by role.

    Raises:
        DeclarationError: There is no such program, or it was made from other settings than the run's.
    """
    path = str(settings.system.program)
    with _local(path, _store_of(settings)) as file:
        document, _ = artifact_loading.read_artifact(file)
        own = document["settings"]
        asked = json.loads(json.dumps({name: to_mapping(getattr(settings, name)) for name in ("system", "ablation")}))
        other = [text for name in asked for text in _other_settings(name, own.get(name, {}), asked[name])]
        if other or set(own) != set(asked):
            made = " ".join(other) or f"those of a {document['kind']}"
            raise DeclarationError(f"system.program={path}: was made from other settings than this run's: {made}")
        program = artifact_loading.load_program(file, lms=lms, retriever=retriever)
    return cast("RiskAuditor", program)


def _other_settings(group: str, own: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Returns what to set on the command line so that a group is what a program was made from."""
    if own.get("name") != asked["name"] and own:
        return [f"{group}={own['name']}"]
    return [f"{group}.{name}={value}" for name, value in own.items() if name != "program" and value != asked.get(name)]


def saved_as(program: Any) -> dict[str, str]:
    """Returns the hash of the file that a program was loaded from, for the run's spec; {} where it was built."""
    known = getattr(program, "artifact", None)
    return {} if known is None else {"artifact": cast("str", known)}


def _store_of(settings: Settings) -> TrackingSettings | None:
    """Returns the store of the run's own settings, where they name one: it is where programs are looked for as well."""
    return settings.tracking if settings.tracking.kind == "mlflow" else None


def show_program(path: str | Path, tracking: TrackingSettings | None = None) -> tuple[str, dict[str, Any]]:
    """Returns a saved program for a terminal and as plain data: what it is, and what optimisation changed in it.

    Args:
        path: As `load_program` takes it.
        tracking: As `load_program` takes it.

    Raises:
        DeclarationError: There is no such program of this version.
    """
    with _local(path, tracking) as file:
        return show_artifact(file)
