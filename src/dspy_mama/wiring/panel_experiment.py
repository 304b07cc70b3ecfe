"""What the Hydra app on the diagnosis panel does: one run, its line, and the sweep's table beside the paper's."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dspy_mama.core.errors import MamaError
from dspy_mama.wiring.compose import settings_from
from dspy_mama.wiring.diagnose import run_diagnoses
from dspy_mama.wiring.sweep import PARENT_TAG, Job, note_job, open_parent, read_jobs, sweep_folder


def run_panel_experiment(config: Any) -> float | None:
    """Carries out one run of a study on the panel; in a sweep, a run that fails leaves the others to go on.

    Args:
        config: Hydra's config.

    Returns:
        The panel's (or the first method's) accuracy of what is judged first at the first stage, such as the most
        likely diagnosis; None where it is not known, or where a sweep's run failed.

    Raises:
        SystemExit: Outside of a sweep: the run could not be carried out (2), or too much is unscored (3).
    """
    sweep, parent, folder, value = sweep_folder(), "", "", None
    setting = _setting()
    try:
        settings = settings_from(config)
        parent = open_parent(settings, sweep) if sweep else ""
        tags = {"sweep": sweep.name if sweep else "", PARENT_TAG: parent} if parent else {}
        result = asyncio.run(run_diagnoses(settings, tags=tags))
        code, folder = result.exit_code, str(result.folder.absolute())
        if code:
            print(f"{setting}: {result.unscored}", file=sys.stderr)  # noqa: T201
        else:
            value = _first(result.summary)
            print(f"{setting}: n={result.summary['n']}, {result.folder}")  # noqa: T201
    except MamaError as error:
        print(f"{setting}: {error}", file=sys.stderr)  # noqa: T201
        code = 2
    if sweep:
        note_job(sweep, Job(setting, folder, code, parent))
        _print_sweep(sweep)
    elif code:
        raise SystemExit(code)
    return value


def _setting() -> str:
    """Returns what a study of the panel can vary, as it was given."""
    from hydra.core.hydra_config import HydraConfig

    given = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
    shown = [override.lstrip("+") for override in given]
    return " ".join(part for part in shown if part.startswith(("panel", "lm"))) or "as given"


def varied(settings: Sequence[str]) -> list[str]:
    """Returns each setting without the parts that all of them share."""
    parts = [setting.split(" ") for setting in settings]
    shared = set.intersection(*map(set, parts)) if len(parts) > 1 else set()
    return [" ".join(part for part in own if part not in shared) or "as given" for own in parts]


def _first(summary: dict[str, Any]) -> float | None:
    method = next(iter(summary["scores"][summary["stages"][0]].values()))
    value: float | None = next(iter(method.values()))["value"]
    return value


def _print_sweep(sweep: Path) -> None:
    """Prints and writes the sweep's table as far as it has come."""
    from rich.console import Console

    from dspy_mama.reporting.diagnosis_paper import knowledge_sweep, sweep_table, sweeps_table
    from dspy_mama.reporting.printing import as_markdown, show_tables

    done = [job for job in read_jobs(sweep) if job.folder and not job.exit_code]
    if not done:
        return
    found = [json.loads((Path(job.folder) / "summary.json").read_text("utf-8")) for job in done]
    summaries = dict(zip(varied([job.setting for job in done]), found, strict=True))
    tables = [sweep_table(summaries), sweeps_table()] if any(summary["cases"] for summary in found) else []
    tables += [table for table in [knowledge_sweep(summaries)] if table.rows]
    show_tables(tables, Console(width=None if sys.stdout.isatty() else 132))
    (sweep / "panel.md").write_text(as_markdown(tables), encoding="utf-8")
