"""Programs as MLflow models: a folder of JSON, loaded by code that is installed, never by code or pickles inside it.

MLflow's usual ways both run what lies in the model's folder: a pickled model is unpickled, "models from code" executes
a script. A model of `loader_module` and data runs neither.
"""

from __future__ import annotations

import re
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dspy_mama.core.errors import DeclarationError
from dspy_mama.tracking.mlflow_names import slug
from dspy_mama.tracking.mlflow_store import StoreLocation, open_client, quiet

if TYPE_CHECKING:
    from mlflow import MlflowClient

PROGRAM_FOLDER: Final = "program"
"""Folder of the program's files; MLflow puts it under `data/`."""
MODEL_SCHEMES: Final = ("models:/", "runs:/")

_REQUIRED: Final = ("dspy-mama", "dspy", "mlflow")
_MODEL: Final = re.compile(r"models:/+(?P<name>[^/@]+)(?:/(?P<version>[^/]+)|@(?P<alias>[^/]+))?/?")
_RUN: Final = re.compile(r"runs:/+(?P<run>[^/]+)/(?P<path>.+?)/?")


@dataclass(frozen=True, slots=True)
class ModelFace:
    """What a model shows to those who call it.

    Attributes:
        loader: Installed module whose `_load_pyfunc(folder)` makes the model from the program's files.
        inputs: MLflow type per input column, such as `string`.
        outputs: MLflow type per output column; one that ends in `?` may be null.
        example: One row of inputs, written for this purpose: no text of a patient.
        facts: What the model's metadata tells, as plain data.
    """

    loader: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    example: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)


class LoggedProgram(NamedTuple):
    """Where a program went: `uri` loads it; `version` is that of the registry, None where it was not registered."""

    model_id: str
    uri: str
    version: str | None


def write_model(target: Path, files: Path, face: ModelFace, **identity: Any) -> None:
    """Writes an MLflow model to a new folder; no LM is asked and nothing is loaded.

    Args:
        target: Folder to make.
        files: Folder with the program's files, named `PROGRAM_FOLDER`.
        face: Loader, columns and example.
        **identity: Ids that `mlflow.models.Model` takes.
    """
    import pandas as pd
    from mlflow import pyfunc
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, Schema

    columns = [ColSpec(kind, name) for name, kind in face.inputs.items()]
    results = [ColSpec(kind.rstrip("?"), name, required=not kind.endswith("?")) for name, kind in face.outputs.items()]
    pyfunc.save_model(
        path=str(target),
        loader_module=face.loader,
        data_path=str(files),
        mlflow_model=Model(metadata=dict(face.facts), **identity),
        signature=ModelSignature(Schema(columns), Schema(results)),
        input_example=pd.DataFrame([dict(face.example)]),
        # Named here: otherwise MLflow loads the model and asks its LM to find out what it imports.
        pip_requirements=[f"{name}=={metadata.version(name)}" for name in _REQUIRED],
    )


def log_program_model(
    location: StoreLocation,
    run_id: str,
    files: Path,
    face: ModelFace,
    *,
    name: str = "program",
    registered_name: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> LoggedProgram:
    """Logs a program as a model of a run, and registers it where a name is given.

    Args:
        location: The store.
        run_id: The run that made it.
        files: Folder with the program's files.
        face: Loader, columns and example.
        name: Name of the model within the run.
        registered_name: Name in the model registry; None = not registered.
        tags: Facts to search by.

    Raises:
        DeclarationError: The store has no such run, or refuses the model.
    """
    client = open_client(location)
    try:
        return _log(client, run_id, files, face, slug(name), registered_name, dict(tags or {}))
    except Exception as error:
        raise DeclarationError(f"the model could not be logged to {location.uri}: {_line(error)}") from error


def _log(
    client: MlflowClient,
    run_id: str,
    files: Path,
    face: ModelFace,
    name: str,
    registered_name: str | None,
    tags: dict[str, str],
) -> LoggedProgram:
    from mlflow.entities import LoggedModelOutput

    run = client.get_run(run_id)
    model = client.create_logged_model(run.info.experiment_id, name, source_run_id=run_id, tags=tags)
    identity = {"artifact_path": model.artifact_location, "model_uuid": model.model_id, "run_id": run_id}
    try:
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "model"
            with quiet("mlflow.pyfunc"):
                write_model(target, files, face, model_id=model.model_id, **identity)
            client.log_model_artifacts(model.model_id, str(target))
    except BaseException:
        client.finalize_logged_model(model.model_id, "FAILED")
        raise
    client.finalize_logged_model(model.model_id, "READY")
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])
    uri = f"models:/{model.model_id}"
    if registered_name is None:
        return LoggedProgram(model.model_id, uri, None)
    # MLflow looks a `models:/` source up in its global store, which may be another; a server looks in its own.
    source = uri if client.tracking_uri.startswith("http") else model.artifact_location
    version = _register(client, registered_name, source, run_id, model.model_id, tags)
    return LoggedProgram(model.model_id, f"models:/{registered_name}/{version}", version)


def _register(client: MlflowClient, name: str, source: str, run_id: str, model_id: str, tags: dict[str, str]) -> str:
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    made = client.create_model_version(name, source, run_id=run_id, tags=tags, model_id=model_id)
    return str(made.version)


def is_model_uri(path: str | Path) -> bool:
    """Tells whether a path is an address in MLflow."""
    return str(path).startswith(MODEL_SCHEMES)


def fetch_model(uri: str, location: StoreLocation, folder: Path) -> Path:
    """Downloads a program's files from MLflow; nothing of them is loaded or run.

    Args:
        uri: `models:/NAME/VERSION`, `models:/NAME/latest`, `models:/NAME@ALIAS`, `models:/MODEL_ID`, or
            `runs:/RUN/NAME` (a model of the run by name, or one of its files or folders).
        location: The store.
        folder: Where to put them.

    Returns:
        The downloaded file or folder.

    Raises:
        DeclarationError: The store has no such model.
    """
    from mlflow.artifacts import download_artifacts

    client = open_client(location)
    try:
        source = _source_of(uri, client)
        return Path(download_artifacts(artifact_uri=source, dst_path=str(folder), tracking_uri=location.uri))
    except DeclarationError:
        raise
    except Exception as error:
        raise DeclarationError(f"{uri} cannot be had from {location.uri}: {_line(error)}") from error


def _source_of(uri: str, client: MlflowClient) -> str:
    """Returns the address of the files behind a model's or run's address."""
    if found := _RUN.fullmatch(uri):
        return _of_run(found["run"], found["path"], client)
    parts = _MODEL.fullmatch(uri)
    if parts is None:
        raise DeclarationError(
            f"{uri}: such an address is models:/NAME/VERSION, models:/NAME@ALIAS, models:/MODEL_ID or runs:/RUN/NAME"
        )
    if parts["alias"]:
        version = client.get_model_version_by_alias(parts["name"], parts["alias"])
    elif parts["version"] == "latest":
        versions = client.search_model_versions(f"name = '{parts['name']}'")
        if not versions:
            raise DeclarationError(f"{uri}: the registry has no version of {parts['name']}")
        version = max(versions, key=lambda one: int(one.version))
    elif parts["version"]:
        version = client.get_model_version(parts["name"], parts["version"])
    else:
        return str(client.get_logged_model(parts["name"]).artifact_location)
    return str(client.get_model_version_download_uri(version.name, version.version))


def _of_run(run_id: str, path: str, client: MlflowClient) -> str:
    run = client.get_run(run_id)
    outputs = run.outputs.model_outputs if run.outputs else []
    models = [client.get_logged_model(output.model_id) for output in outputs]
    named = [model for model in models if model.name == path]
    if named:
        return str(max(named, key=lambda model: int(model.creation_timestamp)).artifact_location)
    return f"{run.info.artifact_uri.rstrip('/')}/{path}"


def new_folder(root: Path) -> Path:
    """Returns a new folder for the program's files, named as the model keeps it."""
    folder = root / uuid.uuid4().hex / PROGRAM_FOLDER
    folder.mkdir(parents=True)
    return folder


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0] or type(error).__name__
