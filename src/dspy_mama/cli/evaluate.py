"""`mama evaluate` and `mama demo`: audit pairs, compare with gold labels, log the run."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Final

from dspy_mama.cli.results import run_facts
from dspy_mama.cli.verb import Outcome, Verb, no_arguments
from dspy_mama.settings import Settings
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.index import ensure_shipped_index
from dspy_mama.wiring.lifecycle import StudyResult
from dspy_mama.wiring.study import run_study

DEMO_IDS: Final = ("s7", "s22", "s34")
"""Pairs of the demonstration: enough to fill every table, few enough for two minutes on two cores."""


def _print(result: StudyResult, settings: Settings) -> None:
    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting import print_tables

    if result.summary:
        print_tables(result.summary, make_console())
    print(f"run       {result.folder}")
    print(f"report    {result.folder / 'report.html'}")
    if result.tracked:
        print(
            f"mlflow    run {result.tracked} in experiment "
            f"{settings.tracking.experiment.replace('{data}', settings.data.name)}"
        )
        print("          look at it with: make ui")
    if result.problems:
        print(f"mama: not everything could be logged: {result.problems[0]}", file=sys.stderr)
    if result.resumed:
        print(f"resumed   {result.resumed} pair(s) were done before and were not repeated")


def finish(result: StudyResult, settings: Settings, as_json: bool) -> Outcome:
    """Prints a run's tables and places unless JSON was asked for, and returns exit code and document."""
    if not as_json:
        _print(result, settings)
    if result.run.failed:
        print(f"mama: {result.run.failed} pair(s) failed on the way to the LM", file=sys.stderr)
    if result.exit_code:
        print(f"mama: {'interrupted' if result.run.interrupted else result.unscored}", file=sys.stderr)
    return result.exit_code, run_facts(result) | {"unscored_rate": result.unscored.rate, **result.summary}


def _evaluate(given: argparse.Namespace) -> Outcome:
    settings = compose(given.overrides)
    ensure_shipped_index(settings)
    result = asyncio.run(run_study(settings, verb="evaluate", drop_faulty=given.skip_faulty))
    return finish(result, settings, given.json)


def _demo(given: argparse.Namespace) -> Outcome:
    ids = f"data.ids=[{','.join(DEMO_IDS)}]"
    fresh = "runtime.resume=false"
    settings = compose(["data=sample", ids, fresh, "tracking.traces=1.0", *given.overrides])
    ensure_shipped_index(settings)
    result = asyncio.run(run_study(settings, verb="demo"))
    return finish(result, settings, given.json)


def _evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--skip-faulty", action="store_true", help="leave faulty rows out, and say which")


EVALUATE: Final = Verb("audit pairs with gold labels: metrics, intervals, report", _evaluate_arguments, _evaluate)
DEMO: Final = Verb("audit a handful of the bundled pairs with the embedded LM and log the run", no_arguments, _demo)
