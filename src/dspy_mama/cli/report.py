"""`mama report RUN`: tables, figures and HTML of a run, from its records alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from dspy_mama.cli.verb import Outcome, Verb, no_arguments
from dspy_mama.core.errors import DeclarationError


def _run(given: argparse.Namespace) -> Outcome:
    from dspy_mama.wiring.rebuild import rebuild_any

    if len(given.overrides) != 1:
        raise DeclarationError("report takes one run folder: mama report mlruns/runs/RUN")
    system, summary, page = rebuild_any(Path(given.overrides[0]))
    if not given.json:
        _print(system, summary)
        print(f"report    {page}")
    return 0, {**summary, "report": str(page)}


def _print(system: str, summary: dict[str, Any]) -> None:
    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting import print_tables
    from dspy_mama.reporting.printing import show_tables

    console = make_console()
    if system == "refine":
        from dspy_mama.reporting.refinement_tables import refinement_tables

        show_tables(refinement_tables({"this run": summary}), console)
    elif system == "diagnosis":
        from dspy_mama.reporting.diagnosis_tables import print_diagnoses

        print_diagnoses(summary, console)
    else:
        print_tables(summary, console)


REPORT: Final = Verb("rebuild tables, figures and HTML of a run from its records alone", no_arguments, _run)
