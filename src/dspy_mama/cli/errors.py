"""`mama errors RUN [RUN ...]`: where audits are wrong, and how severe clinicians find it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.errors import DeclarationError
from dspy_mama.reporting.errors import ErrorCase, analyse_errors, error_cases
from dspy_mama.systems.audit import SeverityOpinion
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.errors import AuditRun, load_runs, suggest_severity, usage_of

Runs = Mapping[str, Sequence[Mapping[str, Any]]]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sheet", metavar="FILE", help="write a sheet of the errors for clinicians: .csv or .xlsx")
    parser.add_argument("--read", nargs="+", metavar="FILE", help="read sheets that were filled in (after the runs)")
    parser.add_argument(
        "--suggest", action="store_true", help="with --sheet: add an LM's level, apart from the rater's"
    )
    parser.add_argument("--domain", choices=DOMAINS, help="sheet: errors of this domain alone")
    parser.add_argument("--common", action="store_true", help="sheet: only errors that all the runs make")


def _run(given: argparse.Namespace) -> Outcome:
    names = [part for part in given.overrides if "=" not in part or Path(part).is_dir()]
    overrides = [part for part in given.overrides if part not in names]
    _check(given, names, overrides)
    loaded = load_runs(names, compose(overrides).tracking if overrides else None)
    runs = {name: run.records for name, run in loaded.items()}
    if not given.sheet and not given.read:
        return _analyse(runs, given.json)
    cases = error_cases(runs, domains=[given.domain] if given.domain else DOMAINS, common=given.common)
    if not cases:
        raise DeclarationError("there is no such error in these runs: nothing to rate")
    return _read(given, cases) if given.read else _sheet(given, cases, loaded, overrides)


def _check(given: argparse.Namespace, names: list[str], overrides: list[str]) -> None:
    if not names:
        raise DeclarationError("errors takes one or more run folders: mama errors mlruns/runs/RUN [RUN ...]")
    if given.sheet and given.read:
        raise DeclarationError("either write a sheet (--sheet) or read some (--read)")
    if given.suggest and not given.sheet:
        raise DeclarationError("--suggest fills a column of the sheet: name it with --sheet FILE")
    if (given.domain or given.common) and not (given.sheet or given.read):
        raise DeclarationError("--domain and --common choose what is on a sheet: they go with --sheet or --read")
    unused = [part for part in overrides if not part.startswith("tracking")]
    if unused and not given.suggest:
        raise DeclarationError(
            f"{' '.join(unused)}: settings here choose the LM of --suggest, or with tracking.uri=... the MLflow store"
        )


def _analyse(runs: Runs, as_json: bool) -> Outcome:
    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting.error_tables import error_tables
    from dspy_mama.reporting.printing import show_tables

    analysis = analyse_errors(runs)
    if not as_json:
        show_tables(error_tables(analysis), make_console())
    return 0, analysis


def _sheet(
    given: argparse.Namespace, cases: Sequence[ErrorCase], runs: Mapping[str, AuditRun], overrides: list[str]
) -> Outcome:
    from dspy_mama.reporting import label_banner
    from dspy_mama.reporting.severity_sheet import check_target, sheet_rows, write_sheet

    sheet_rows(cases)  # refuses records without texts before the first token is spent
    check_target(given.sheet)
    document: dict[str, Any] = {"sheet": given.sheet, "errors": len(cases), "common": sum(c.common for c in cases)}
    opinions: dict[str, SeverityOpinion] | None = None
    code = 0
    if given.suggest:
        settings = compose(overrides)
        opinions = asyncio.run(suggest_severity(cases, runs, settings))
        missing = sum(opinion.level is None for opinion in opinions.values())
        models = sorted({opinion.model for opinion in opinions.values() if opinion.model})
        code = 3 if missing / len(cases) > settings.runtime.max_unscored_rate else 0
        document |= {"suggested": len(cases) - missing, "unscored": missing, "models": models}
        document |= {
            "usage": usage_of(list(opinions.values())).to_dict(),
            "label_banner": label_banner({"judge": models}),
        }
    write_sheet(cases, given.sheet, opinions)
    if not given.json:
        _print_sheet(document)
    if code:
        print(f"mama: {document['unscored']} of {len(cases)} suggestions could not be read", file=sys.stderr)
    return code, {**document, "exit_code": code}


def _print_sheet(document: Mapping[str, Any]) -> None:
    print(f"sheet     {document['sheet']}: {document['errors']} error(s), {document['common']} common to all runs")
    if "suggested" in document:
        print(f"suggested {document['suggested']} level(s) by {', '.join(document['models']) or 'no model'}: no rating")
        if document["label_banner"]:
            print(document["label_banner"])
    print("read it   with --read once severity, explanation and rater are filled in")


def _read(given: argparse.Namespace, cases: Sequence[ErrorCase]) -> Outcome:
    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting.printing import show_tables
    from dspy_mama.reporting.rating_tables import rating_tables
    from dspy_mama.reporting.ratings import read_ratings, summarise_ratings

    summary = summarise_ratings(read_ratings(given.read, cases), cases)
    if not given.json:
        show_tables(rating_tables(summary), make_console())
    return 0, summary


ERRORS: Final = Verb(
    "where runs are wrong: by phase, in common, repaired or broken; severity by clinicians", _arguments, _run
)
