"""`mama stability`: audit the same pairs several times, under one or more settings, and see which labels hold."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any, Final

from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.index import ensure_shipped_index
from dspy_mama.wiring.stability import StabilityResult, grid, run_stability


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=3, metavar="K", help="audits of each pair (default: 3)")
    parser.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="NAME=V1,V2",
        help="audit under each of these values; give it again for a grid: lm=openai,vllm, "
        "lm.default.temperature=0,0.7, system.order_seed=null,1,2, system.router.scope=case,agnostic",
    )
    parser.add_argument("--skip-faulty", action="store_true", help="leave faulty rows out, and say which")


def _document(result: StabilityResult) -> dict[str, Any]:
    settings = {
        run.name: {
            "run": run.folder.name,
            "folder": str(run.folder),
            "n": run.summary.get("n"),
            "label_banner": run.summary.get("label_banner"),
            "unscored_rate": run.unscored.rate,
            "done": run.done,
            "resumed": run.resumed,
            "failed": run.failed,
            "stability": run.summary.get("stability"),
        }
        for run in result.settings
    }
    return {
        "settings": settings,
        "between": result.between,
        "mlflow_run": result.tracked or None,
        "interrupted": result.interrupted,
        "exit_code": result.exit_code,
        "problems": list(result.problems),
    }


def _print(result: StabilityResult) -> None:
    from rich.text import Text

    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting.printing import show_tables
    from dspy_mama.reporting.stability_tables import stability_tables

    console = make_console()
    for banner in dict.fromkeys(run.summary.get("label_banner") for run in result.settings):
        if banner:
            console.print(Text(banner, style="bold yellow"))
    show_tables(
        stability_tables({run.name: run.summary["stability"] for run in result.settings}, result.between), console
    )
    for run in result.settings:
        print(f"run       {run.folder}  {run.name}")
        if run.resumed:
            print(f"resumed   {run.resumed} audit(s) were done before and were not repeated")
    if result.tracked:
        print(f"mlflow    run {result.tracked}, with its settings and repeats inside it; look at it with: make ui")


def _complain(result: StabilityResult) -> None:
    if result.problems:
        print(f"mama: not everything could be logged: {result.problems[0]}", file=sys.stderr)
    for run in result.settings:
        if run.failed:
            print(f"mama: {run.name}: {run.failed} audit(s) failed on the way to the LM", file=sys.stderr)
        if run.interrupted:
            print(f"mama: {run.name}: interrupted; the same command goes on from here", file=sys.stderr)
        elif run.unscored.exceeded:
            print(f"mama: {run.name}: {run.unscored}", file=sys.stderr)


def _run(given: argparse.Namespace) -> Outcome:
    if given.vary:
        compose(given.overrides)  # a fault of the shared settings is named as such, not once per combination
    named = grid(given.overrides, given.vary)
    for settings in named.values():
        ensure_shipped_index(settings)
    result = asyncio.run(run_stability(named, repeats=given.repeats, drop_faulty=given.skip_faulty))
    if not given.json and not result.interrupted:
        _print(result)
    _complain(result)
    return result.exit_code, _document(result)


STABILITY: Final = Verb(
    "audit the same pairs several times: flips, agreement, spread of every metric", _arguments, _run
)
