"""`mama report RUN`: tables, figures and HTML of a run, from its records alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from dspy_mama.cli.verb import Outcome, Verb, no_arguments
from dspy_mama.core.errors import DeclarationError


def _run(given: argparse.Namespace) -> Outcome:
    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting import print_tables
    from dspy_mama.wiring.study import rebuild_report

    if len(given.overrides) != 1:
        raise DeclarationError("report takes one run folder: mama report mlruns/runs/RUN")
    summary, page = rebuild_report(Path(given.overrides[0]))
    if not given.json:
        print_tables(summary, make_console())
        print(f"report    {page}")
    return 0, {**summary, "report": str(page)}


REPORT: Final = Verb("rebuild tables, figures and HTML of a run from its records alone", no_arguments, _run)
