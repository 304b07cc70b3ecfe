"""Logs runs to MLflow by explicit run id: safe in threads, silent about failures of its own until the end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dspy_mama.settings import TrackingSettings
from dspy_mama.tracking.mlflow_names import SlugMap, batches, flatten, shorten, slug, usable
from dspy_mama.tracking.mlflow_store import locate, open_client
from dspy_mama.tracking.mlflow_traces import TraceLayout, audit_layout, build_trace, is_sampled
from dspy_mama.tracking.scrub import scrub, scrub_text

if TYPE_CHECKING:
    from mlflow import MlflowClient

_log = logging.getLogger(__name__)

RUN_TAG: Final = "mama.run"
"""Tag that holds the run folder's name: a resumed run is found by it and goes on under the same MLflow id."""

_GIVE_UP_AFTER: Final = 3
"""Failures in a row after which a store counts as gone: each may have cost the time of its retries."""


class MlflowTracker:
    """One run in an MLflow store.

    Nothing here raises after construction: a failure to log is collected in `problems`, warned of once, and the run
    goes on. The run folder holds the same facts.
    """

    def __init__(self, settings: TrackingSettings, data: str = "data", layout: TraceLayout = audit_layout) -> None:
        """Checks the address; the store is opened by `start`.

        Args:
            settings: Where to log.
            data: Name of the data set, for `{data}` in the experiment's name.
            layout: How a record is shown as a trace.

        Raises:
            DeclarationError: The address names a store that MLflow no longer has.
        """
        self.location = locate(settings.uri, settings.root)
        self.experiment = settings.experiment.replace("{data}", data)
        self.run_id = ""
        self.experiment_id = ""
        self._traces = settings.traces
        self._layout = layout
        self._client: MlflowClient | None = None
        self._names = SlugMap()
        self._skipped: set[str] = set()
        self._problems: list[str] = []
        self._failures = 0
        self._gone = False
        self._lock = threading.Lock()
        # MLflow's sqlite store opens a second connection inside a first one: sixteen threads at once empty its pool of
        # fifteen and wait for one another until they time out. One call at a time is also all that sqlite can write.
        self._store_lock = threading.Lock()

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be logged, one line each."""
        return tuple(self._problems)

    @property
    def skipped(self) -> tuple[str, ...]:
        """Names of the metrics that had no number (None, NaN, infinity)."""
        return tuple(sorted(self._skipped))

    def start(self, name: str, params: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        """Opens a run, or the one that was opened under the same name before.

        Args:
            name: The run folder's name.
            params: Settings as plain data; nested groups become dotted names.
            tags: Facts to search by (system, ablation, lm, hash of the data).

        Returns:
            MLflow's run id; "" where the store could not be opened.
        """
        self._try("opening the store", lambda: self._open(name))
        if not self.run_id:
            self._gone = True
            return ""
        self._try("parameters", lambda: self._log_params(params))
        self._try("tags", lambda: self._set_tags(tags))
        return self.run_id

    def log_metrics(self, metrics: Mapping[str, float | None]) -> None:
        """Logs numbers under names that MLflow accepts; what is not a number is left out and counted.

        Args:
            metrics: Any names; `/` groups them in the UI.
        """
        with self._lock:
            kept, skipped = usable(metrics)
            self._skipped = (self._skipped | set(skipped)) - set(kept)
            named = {self._names[name]: value for name, value in kept.items()}
        self._try("metrics", lambda: self._log_metrics(named))

    def log_artifacts(self, folder: str) -> None:
        """Stores every file and sub-folder of a run folder but hidden ones."""
        self._try("artifacts", lambda: self._log_artifacts(Path(folder)))

    def log_trace(self, record: Mapping[str, Any]) -> None:
        """Stores a finished record as a trace, if it belongs to the sampled share."""
        if self._traces and is_sampled(str(record.get("key", "")), self._traces):
            self._try("a trace", lambda: self._log_trace(record))

    def finish(self, status: str) -> None:
        """Closes the run.

        Args:
            status: `FINISHED`, `FAILED` or `KILLED`.
        """
        self._try("the end of the run", lambda: self._finish(status), last=True)

    def _try(self, what: str, action: Callable[[], None], last: bool = False) -> None:
        if self._gone or (self._failures >= _GIVE_UP_AFTER and not last):
            return
        try:
            with self._store_lock:
                action()
            self._failures = 0
        except Exception as error:  # noqa: BLE001 - tracking must never fail a run that was paid for
            self._failures += 1
            self._note(f"{what}: {type(error).__name__}: {error}".splitlines()[0])

    def _note(self, problem: str) -> None:
        with self._lock:
            self._problems.append(scrub_text(problem))
            first = len(self._problems) == 1
        if first:
            _log.warning("MLflow could not log everything (the run folder has it all): %s", self._problems[0])

    def _open(self, name: str) -> None:
        client = self._client = open_client(self.location)
        self.experiment_id = self._experiment(client)
        tag = slug(name)
        before = client.search_runs([self.experiment_id], f"tags.`{RUN_TAG}` = '{tag}'", max_results=1)
        if before:
            run = before[0]
            client.update_run(run.info.run_id, status="RUNNING")
        else:
            run = client.create_run(self.experiment_id, run_name=name, tags={RUN_TAG: tag})
        self.run_id = run.info.run_id

    def _experiment(self, client: MlflowClient) -> str:
        found = client.get_experiment_by_name(self.experiment)
        if found is None:
            try:
                return str(client.create_experiment(self.experiment, artifact_location=self.location.artifacts))
            except Exception:
                found = client.get_experiment_by_name(self.experiment)  # made by another process in between
                if found is None:
                    raise
        if found.lifecycle_stage == "deleted":
            raise RuntimeError(
                f"experiment {self.experiment!r} was deleted: restore it, or set another tracking.experiment"
            )
        if self.location.artifacts and found.artifact_location != self.location.artifacts:
            self._note(
                f"experiment {self.experiment!r} keeps its artifacts at {found.artifact_location}, where it was made"
            )
        return str(found.experiment_id)

    def _ready(self) -> MlflowClient:
        if self._client is None:
            raise RuntimeError("the run was not started")
        return self._client

    def _log_params(self, params: Mapping[str, Any]) -> None:
        from mlflow.entities import Param

        client = self._ready()
        known = client.get_run(self.run_id).data.params  # a resumed run has them; MLflow refuses to change one
        names = SlugMap()
        flat = {names[name]: value for name, value in flatten(scrub(params)).items()}
        short, files = shorten({name: value for name, value in flat.items() if name not in known})
        for batch in batches((Param(name, value) for name, value in short.items()), 100):
            client.log_batch(self.run_id, params=batch)
        for file, text in files.items():
            client.log_text(self.run_id, text, f"long_values/{file}")

    def _set_tags(self, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        client, names = self._ready(), SlugMap()
        short, files = shorten({names[name]: scrub_text(str(value)) for name, value in tags.items()})
        for batch in batches((RunTag(name, value) for name, value in short.items()), 100):
            client.log_batch(self.run_id, tags=batch)
        for file, text in files.items():
            client.log_text(self.run_id, text, f"long_values/{file}")

    def _log_metrics(self, metrics: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        for batch in batches((Metric(name, value, now, 0) for name, value in metrics.items()), 1000):
            self._ready().log_batch(self.run_id, metrics=batch)

    def _log_artifacts(self, folder: Path) -> None:
        client = self._ready()
        for path in sorted(folder.iterdir()):
            if path.name.startswith("."):
                continue
            if path.is_dir():
                client.log_artifacts(self.run_id, str(path), artifact_path=path.name)
            else:
                client.log_artifact(self.run_id, str(path))

    def _log_trace(self, record: Mapping[str, Any]) -> None:
        from mlflow.tracing.client import TracingClient

        self._ready()
        info, spans = build_trace(record, self.experiment_id, self.run_id, self._layout)
        client = TracingClient(self.location.uri)
        client.start_trace(info)
        client.log_spans(self.experiment_id, spans)

    def _finish(self, status: str) -> None:
        client = self._ready()
        if self._names.changed:
            client.log_dict(self.run_id, self._names.changed, "metric_names.json")
        client.set_tag(self.run_id, "mama.metrics_skipped", str(len(self._skipped)))
        if self._skipped:
            client.log_dict(self.run_id, {"no number": list(self.skipped)}, "metrics_skipped.json")
        client.set_terminated(self.run_id, status=status)
