"""Sweeps of Hydra: one parent in MLflow, its runs nested below it, and their comparison at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from hydra.experimental.callback import Callback

from dspy_mama.core.errors import DeclarationError, MamaError
from dspy_mama.settings import Settings, from_mapping
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.build import build_tracker
from dspy_mama.wiring.rebuild import AUDIT, system_of

PARENT_TAG: Final = "mlflow.parentRunId"
"""Tag by which MLflow's UI nests a run below another."""

_RUNS: Final = "runs.jsonl"


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a sweep.

    Attributes:
        setting: What was varied, such as `system=rag`.
        folder: The run's folder, or "" where it could not be carried out.
        exit_code: 0 done, else why it is no result.
        parent: MLflow's id of the sweep, or "".
    """

    setting: str
    folder: str
    exit_code: int
    parent: str


def sweep_folder() -> Path | None:
    """Returns the folder of the sweep that this job belongs to, or None outside of one."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    if not HydraConfig.initialized():
        return None
    config = HydraConfig.get()
    return Path(config.sweep.dir).absolute() if config.mode == RunMode.MULTIRUN else None


def open_parent(settings: Settings, sweep: Path) -> str:
    """Returns MLflow's id of the sweep's parent run, made by the sweep's first job ("" where there is no store)."""
    tracker = build_tracker(settings)
    tags = {"study": settings.experiment.name, "sweep": sweep.name, "data": settings.data.name}
    run_id = tracker.start(_parent_name(settings, sweep), {}, tags)
    tracker.finish("FINISHED")
    return run_id or ""


def _parent_name(settings: Settings, sweep: Path) -> str:
    return f"sweep {settings.experiment.name} {sweep.name}"


def note_job(sweep: Path, job: Job) -> None:
    """Writes down a job of the sweep, so that its end knows all of them."""
    sweep.mkdir(parents=True, exist_ok=True)
    with (sweep / _RUNS).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(job)) + "\n")


def read_jobs(sweep: Path) -> list[Job]:
    """Returns the jobs of a sweep, in their order."""
    file = sweep / _RUNS
    return [Job(**json.loads(line)) for line in file.read_text("utf-8").splitlines()] if file.is_file() else []


class SweepReport(Callback):  # type: ignore[misc]
    """At the end of a sweep: prints the paper's tables, writes the comparison, and logs both to the parent run."""

    def on_multirun_end(self, config: Any, **kwargs: Any) -> None:
        """Reports; what cannot be compared is said and fails nothing.

        Raises:
            SystemExit: A run of the sweep failed (its own exit code).
        """
        sweep = Path(config.hydra.sweep.dir).absolute()
        jobs = read_jobs(sweep)
        if not jobs:
            return
        try:
            report_sweep(sweep, jobs)
        except (MamaError, OSError) as error:
            print(f"sweep: {error}", file=sys.stderr)  # noqa: T201
        for job in jobs:
            if job.exit_code:
                print(f"sweep: {job.setting} failed (exit code {job.exit_code})", file=sys.stderr)  # noqa: T201
        code = max(job.exit_code for job in jobs)
        if code:
            raise SystemExit(code)


def report_sweep(sweep: Path, jobs: Sequence[Job]) -> None:
    """Prints and writes what a sweep says.

    Raises:
        DeclarationError: The runs share no pair, or none has gold.
    """
    done = [job for job in jobs if job.folder and not job.exit_code]
    if not done:
        return
    settings = _settings(Path(done[-1].folder))
    if any(system_of(RunStore.open(Path(job.folder)).records()) != AUDIT for job in done):
        _log(sweep, settings, None)  # verdicts of risk alone are compared here; other systems' jobs print their table
        return
    _print_tables(sweep, done, settings.experiment.name)
    try:
        comparison = _compare(sweep, done, settings)
    except DeclarationError as error:
        comparison = None
        print(f"no comparison: {error}", file=sys.stderr)  # noqa: T201
    _log(sweep, settings, comparison)


def _settings(folder: Path) -> Settings:
    import dataclasses

    spec = json.loads((folder / "spec.json").read_text("utf-8"))
    groups = {field.name for field in dataclasses.fields(Settings)}
    return from_mapping(Settings, {name: value for name, value in spec.items() if name in groups})


def _print_tables(sweep: Path, jobs: Sequence[Job], study: str) -> None:
    from rich.console import Console

    from dspy_mama.reporting.printing import as_markdown, show_tables
    from dspy_mama.wiring.paper import STUDIES, by_setting, paper_tables

    if study not in STUDIES:
        return
    tables = paper_tables(by_setting(Path(job.folder) for job in jobs), [study])
    show_tables(tables, Console(width=None if sys.stdout.isatty() else 132))
    (sweep / "paper.md").write_text(as_markdown(tables), encoding="utf-8")


def _compare(sweep: Path, jobs: Sequence[Job], settings: Settings) -> dict[str, Any] | None:
    from dspy_mama.wiring.comparison import Reading, compare, read_systems, write_comparison

    if len(jobs) < 2:
        return None
    reading = Reading(cluster="question" if settings.experiment.cluster_by_question else None)
    systems = read_systems([job.folder for job in jobs], reading)
    study = settings.experiment
    found = compare(systems, seed=study.seed, resamples=study.resamples, method=study.interval)
    page = write_comparison(found, systems, sweep / "comparison.html")
    (sweep / "comparison.json").write_text(json.dumps(found, ensure_ascii=False, allow_nan=False), encoding="utf-8")
    print(f"comparison {page}")  # noqa: T201
    return found


def _log(sweep: Path, settings: Settings, comparison: Mapping[str, Any] | None) -> None:
    tracker = build_tracker(settings)
    tracker.start(_parent_name(settings, sweep), {}, {})
    tracker.log_metrics(comparison_metrics(comparison or {}))
    tracker.log_artifacts(str(sweep))
    tracker.finish("FINISHED")


def comparison_metrics(comparison: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns a comparison's numbers under names such as `rag-baseline/average_macro_f1_low`."""
    out: dict[str, float | None] = {}
    for name, delta in comparison.get("deltas", {}).items():
        first, _, second = name.partition("->")
        for measure in ("average_macro_f1", "joint_accuracy"):
            own, key = delta[measure], f"{second}-{first}/{measure}"
            out[key] = own["value"]
            out[f"{key}_low"], out[f"{key}_high"] = own["ci95"] or (None, None)
    return out
