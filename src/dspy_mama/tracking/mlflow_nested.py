"""Runs below a run: a compilation's candidates, each with its figures and its program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dspy_mama.settings import TrackingSettings
from dspy_mama.tracking.mlflow_names import SlugMap, usable
from dspy_mama.tracking.mlflow_store import locate, open_client

RUN_TAG = "dspy_mama.nested"


@dataclass(frozen=True, slots=True)
class ChildRun:
    """A run below another.

    Attributes:
        name: What it is called.
        metrics: Its numbers.
        tags: Facts to search by.
        files: Files to store with it.
    """

    name: str
    metrics: Mapping[str, float | None]
    tags: Mapping[str, str]
    files: Sequence[Path]


def log_children(settings: TrackingSettings, parent: str, children: Sequence[ChildRun]) -> tuple[str, ...]:
    """Logs runs below a run; those that were logged before are left as they are.

    Args:
        settings: Where the store is.
        parent: MLflow's id of the run above.
        children: The runs.

    Returns:
        Their ids, in order.

    Raises:
        MlflowException: The store refuses.
    """
    client = open_client(locate(settings.uri, settings.root))
    experiment = client.get_run(parent).info.experiment_id
    known = client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{parent}'")
    before = {run.data.tags.get(RUN_TAG): run.info.run_id for run in known}
    ids = []
    for child in children:
        if child.name in before:
            ids.append(before[child.name])
            continue
        tags = {"mlflow.parentRunId": parent, RUN_TAG: child.name, **child.tags}
        run_id = client.create_run(experiment, run_name=child.name, tags=tags).info.run_id
        names, (numbers, _) = SlugMap(), usable(child.metrics)
        for name, value in numbers.items():
            client.log_metric(run_id, names[name], value)
        for path in child.files:
            client.log_artifact(run_id, str(path))
        client.set_terminated(run_id)
        ids.append(run_id)
    return tuple(ids)
