"""One run of a Hydra app of `experiments/`, and in a sweep the table that its runs fill as they end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from dspy_mama.core.errors import MamaError
from dspy_mama.settings import Settings
from dspy_mama.wiring.compose import settings_from
from dspy_mama.wiring.lifecycle import StudyResult
from dspy_mama.wiring.sweep import PARENT_TAG, Job, note_job, open_parent, read_jobs, sweep_folder

Work = Callable[[Settings, Mapping[str, str]], Coroutine[Any, Any, StudyResult]]
"""Carries out a run with these further tags."""


def run_job(
    config: Any,
    setting: str,
    work: Work,
    told: Callable[[StudyResult], tuple[str, float | None]],
    table: Callable[[Path, Sequence[Job]], None],
) -> float | None:
    """Carries out one run and prints its line; in a sweep, a run that fails leaves the others to go on.

    Args:
        config: Hydra's config.
        setting: What is varied, for the line and the table.
        work: Carries out the run.
        told: From a result to what its line says and to the number that the app returns.
        table: Shows the sweep's table of the jobs that are done, and writes it into the sweep's folder.

    Returns:
        The number; None where it is not known, or where a sweep's run failed.

    Raises:
        SystemExit: Outside of a sweep: the run could not be carried out (2), was interrupted (1), or too much is
            unscored (3).
    """
    sweep, parent, folder, value = sweep_folder(), "", "", None
    try:
        settings = settings_from(config)
        parent = open_parent(settings, sweep) if sweep else ""
        tags = {"sweep": sweep.name if sweep else "", PARENT_TAG: parent} if parent else {}
        result = asyncio.run(work(settings, tags))
        code, folder = result.exit_code, str(result.folder.absolute())
        if code:
            print(f"{setting}: {result.unscored}", file=sys.stderr)  # noqa: T201
        else:
            line, value = told(result)
            print(f"{setting}: {line}, {result.folder}")  # noqa: T201
    except MamaError as error:
        print(f"{setting}: {error}", file=sys.stderr)  # noqa: T201
        code = 2
    if sweep:
        note_job(sweep, Job(setting, folder, code, parent))
        if done := [job for job in read_jobs(sweep) if job.folder and not job.exit_code]:
            table(sweep, done)
    elif code:
        raise SystemExit(code)
    return value
