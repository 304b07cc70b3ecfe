"""What the Hydra apps of `experiments/` share: arguments, one run, one printed line, the paper's tables."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from dspy_mama.core.errors import MamaError
from dspy_mama.settings import Settings
from dspy_mama.wiring.compose import hydra_overrides, settings_from
from dspy_mama.wiring.index import ensure_shipped_index
from dspy_mama.wiring.lifecycle import StudyResult
from dspy_mama.wiring.study import run_study
from dspy_mama.wiring.sweep import PARENT_TAG, Job, note_job, open_parent, sweep_folder


def experiment_arguments(name: str) -> None:
    """Prepares `sys.argv` for Hydra: names the experiment and lets any field be set, as the `mama` command does.

    Raises:
        SystemExit: An argument is not understood (2).
    """
    options = [part for part in sys.argv[1:] if part.startswith("-")]
    overrides = [part for part in sys.argv[1:] if not part.startswith("-")]
    if not any(part.startswith("experiment=") for part in overrides):
        overrides.insert(0, f"experiment={name}")
    try:
        sys.argv[1:] = [*options, *hydra_overrides(overrides)]
    except MamaError as error:
        print(error, file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None


def run_experiment(config: Any, *, varied: str) -> float | None:
    """Carries out one run of a study and prints its line; in a sweep, a run that fails leaves the others to go on.

    Args:
        config: Hydra's config.
        varied: The group that the study varies, for the line.

    Returns:
        Average macro-F1 of the final phase; None where no domain has gold labels, or where a sweep's run failed.

    Raises:
        SystemExit: Outside of a sweep: the run could not be carried out (2), or too much is unscored (3).
    """
    sweep, parent, setting, folder = sweep_folder(), "", varied, ""
    try:
        settings = settings_from(config)
        setting = f"{varied}={getattr(settings, varied).name}"
        ensure_shipped_index(settings)
        parent = open_parent(settings, sweep) if sweep else ""
        tags = {"sweep": sweep.name if sweep else "", PARENT_TAG: parent} if parent else {}
        result = asyncio.run(run_study(settings, verb=settings.experiment.name, tags=tags))
        code, folder = result.exit_code, str(result.folder.absolute())
        value = _report(result, setting) if not code else None
        if code:
            print(f"{setting}: {result.unscored}", file=sys.stderr)  # noqa: T201
    except MamaError as error:
        print(f"{setting}: {error}", file=sys.stderr)  # noqa: T201
        code, value = 2, None
    if sweep:
        note_job(sweep, Job(setting, folder, code, parent))
    elif code:
        raise SystemExit(code)
    return value


def _report(result: StudyResult, setting: str) -> float | None:
    final = result.summary["final"]
    average, joint = final["average_macro_f1"], final["joint_accuracy"]
    shown = "no gold labels" if average is None else f"average macro-F1 {average:.3f}"
    together = f", joint accuracy {joint['correct']}/{joint['n']}" if joint["n"] else ""
    print(f"{setting}: {shown}{together}, n={result.summary['n']}, {result.folder}")  # noqa: T201
    return None if average is None else float(average)


def print_paper_tables(config: Any) -> None:
    """Prints our numbers beside the paper's, from the newest runs on the config's data with the config's LM.

    Raises:
        SystemExit: The config is at fault (2).
    """
    from rich.console import Console

    from dspy_mama.reporting.printing import as_markdown, show_tables
    from dspy_mama.wiring.paper import paper_tables, runs_for

    try:
        settings: Settings = settings_from(config)
        tables = paper_tables(runs_for(settings))
    except MamaError as error:
        print(f"paper tables: {error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from error
    show_tables(tables, Console(width=None if sys.stdout.isatty() else 132))
    target = Path(settings.tracking.root) / "paper.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(as_markdown(tables), encoding="utf-8")
    print(f"also in {target}")  # noqa: T201
