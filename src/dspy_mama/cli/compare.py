"""`mama compare RUN RUN ...`: paired differences on shared resamples, of runs or of predictions made anywhere."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, Final

from dspy_mama.cli.score import add_bootstrap_arguments, declared
from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.core.errors import DeclarationError

_SETTING = re.compile(r"(tracking|data)(\.\w+)*=.*", re.S)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "RUN: a run folder or its name, an MLflow run id (tracking.uri=... names the store), a file of predictions; "
        "NAME=RUN names it, RUN@initial compares one phase. The difference is second minus first."
    )
    parser.add_argument("--gold", action="append", default=[], help="gold labels for files that hold none")
    parser.add_argument("--baseline", metavar="NAME", help="compare every system with this one alone")
    parser.add_argument(
        "--phase", choices=("initial", "verification", "consensus", "final"), default="final", help="of runs"
    )
    parser.add_argument("--out", metavar="FILE.html", help="where the report goes (default: below tracking.root)")
    add_bootstrap_arguments(parser)


def _run(given: argparse.Namespace) -> Outcome:
    from dspy_mama.wiring.comparison import Reading, compare, read_systems, write_comparison

    words = [word for word in given.overrides if not _SETTING.fullmatch(word)]
    settings = [word for word in given.overrides if _SETTING.fullmatch(word)]
    if len(words) < 2:
        raise DeclarationError("compare takes at least two runs: mama compare mlruns/runs/A mlruns/runs/B")
    tracking = _tracking([word for word in settings if word.startswith("tracking")])
    reading = Reading(
        tracking=tracking,
        gold=given.gold,
        phase=given.phase,
        cluster=given.cluster,
        gold_columns=declared(given.gold_column),
        pred_columns=declared(given.pred_column),
        by_order=given.by_order,
        threshold=given.threshold,
        overrides=[word for word in settings if word.startswith("data")],
    )
    systems = read_systems(words, reading)
    found = compare(systems, baseline=given.baseline, seed=given.seed, resamples=given.resamples, method=given.interval)
    page = write_comparison(found, systems, _target(given.out, tracking.root, found))
    if not given.json:
        _print(found)
        print(f"report    {page}")
    return 0, {**found, "report": str(page)}


def _tracking(overrides: list[str]) -> Any:
    from dspy_mama.settings import TrackingSettings

    if not overrides:
        return TrackingSettings()
    from dspy_mama.wiring.compose import compose

    return compose(overrides).tracking


def _target(out: str | None, root: str, found: dict[str, Any]) -> Path:
    from dspy_mama.core.ids import object_hash

    if out is None:
        key = object_hash([found["sources"], found["seed"], found["resamples"], found["method"]], 12)
        return Path(root) / "comparisons" / key / "comparison.html"
    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise DeclarationError(f"--out {out}: the report is one .html file")
    return Path(out)


def _print(found: dict[str, Any]) -> None:
    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting.comparison_tables import comparison_tables
    from dspy_mama.reporting.printing import show_tables

    show_tables(comparison_tables(found), make_console())


COMPARE: Final = Verb("paired differences of runs or predictions, on shared resamples", _arguments, _run)
