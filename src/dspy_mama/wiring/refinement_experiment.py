"""What the Hydra app on the evaluation loop does: one run, its line, the sweep's Tables I to V beside the paper's."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.settings import Settings
from dspy_mama.wiring.lifecycle import StudyResult
from dspy_mama.wiring.refine import run_refinement, summary_of, uses_auditor
from dspy_mama.wiring.sweep import Job
from dspy_mama.wiring.sweep_job import run_job

TABLES: Final = "refinement.md"
"""File of a sweep's folder."""

_GROUPS: Final = ("refiner", "lm", "data")
_MODEL: Final = re.compile(r"\{.*\bmodel:\s*([^,}\s]+).*\}")


def run_refinement_experiment(config: Any) -> float | None:
    """Carries out one run of a study on the evaluation loop.

    Args:
        config: Hydra's config.

    Returns:
        The share of prompts that converged; None where it is not known, or where a sweep's run failed.

    Raises:
        SystemExit: Outside of a sweep: the run could not be carried out (2), or too much is unscored (3).
    """
    return run_job(config, _setting(), _carry_out, _told, _print_tables)


async def _carry_out(settings: Settings, tags: Mapping[str, str]) -> StudyResult:
    if uses_auditor(settings):
        from dspy_mama.wiring.index import ensure_shipped_index

        ensure_shipped_index(settings)
    return await run_refinement(settings, tags=tags)


def _told(result: StudyResult) -> tuple[str, float | None]:
    own = result.summary["overall"]["convergence"]
    return f"converged {own['count']}/{own['n']}, n={result.summary['n']}", own["value"]


def _setting() -> str:
    """Returns what a study of the loop can vary, as it was given."""
    from hydra.core.hydra_config import HydraConfig

    given = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
    shown = [override.lstrip("+") for override in given]
    return " ".join(part for part in shown if part.split("=")[0].split(".")[0] in _GROUPS) or "as given"


def column_names(settings: Sequence[str]) -> list[str]:
    """Returns a short name for each run of a sweep: what it does not share with the others.

    Args:
        settings: What each run was given, such as `lm.roles.generator.model=openai/gpt-4o data=medsafetybench`.
    """
    parts = [[_short(part) for part in setting.split(" ")] for setting in settings]
    shared = set.intersection(*map(set, parts)) if len(parts) > 1 else set()
    names = [" ".join(part for part in own if part not in shared) or "as given" for own in parts]
    return [name if names.count(name) == 1 else f"{name} (run {place})" for place, name in enumerate(names, start=1)]


def _short(part: str) -> str:
    field, _, value = part.partition("=")
    field = re.sub(r"^lm\.roles\.|\.model$", "", field)
    model = _MODEL.fullmatch(value)
    return f"{field}={model.group(1) if model else value}" if value else part


def _print_tables(sweep: Path, done: Sequence[Job]) -> None:
    """Prints and writes the sweep's tables as far as they have come: one column a run, the paper's beside them."""
    from rich.console import Console

    from dspy_mama.reporting.printing import as_markdown, show_tables
    from dspy_mama.reporting.refinement_tables import refinement_tables

    summaries = dict(
        zip(column_names([job.setting for job in done]), (summary_of(Path(job.folder)) for job in done), strict=True)
    )
    tables = refinement_tables(summaries)
    show_tables(tables, Console(width=None if sys.stdout.isatty() else 160))
    (sweep / TABLES).write_text(as_markdown(tables), encoding="utf-8")
    print(f"tables   {sweep / TABLES}")  # noqa: T201
