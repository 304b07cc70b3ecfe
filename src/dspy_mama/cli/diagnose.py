"""`mama diagnose`: a panel of doctors and the single models beside it on one case or disease, a file, or a data set."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any, Final

from dspy_mama.cli.results import run_facts
from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.settings import Settings
from dspy_mama.settings.overrides import literal
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.lifecycle import StudyResult

NOTE: Final = "No substitute for a clinician's judgement; not to be used for a patient."


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "FILE: csv, jsonl, parquet or xlsx of cases. Without FILE and --case, the data set of data=... is diagnosed. "
        "panel.methods=[mac,direct,cot,self_consistency,self_refine] and panel.stages=[primary,follow_up,knowledge] "
        "choose what is run (knowledge: what is known of the cases' diseases; with it alone FILE may be a list of "
        "diseases); lm.roles.grader names the LM that grades."
    )
    parser.add_argument("--case", metavar="TEXT", help="one patient's case")
    parser.add_argument("--knowledge", metavar="DISEASE", help="what each method knows of one disease, graded")
    parser.add_argument(
        "--grade", metavar="RUN", help="grade the diagnoses of a finished run again, as a run of its own"
    )

    parser.add_argument("--ratings", metavar="CSV", help="hold the grades of a run, named as FILE, against people's")


def _run(given: argparse.Namespace) -> Outcome:
    files = [part for part in given.overrides if "=" not in part or Path(part).exists()]
    overrides = [part for part in given.overrides if part not in files]
    if len(files) > 1:
        raise DeclarationError(f"one file at a time, please: {', '.join(files)}")
    if sum(map(bool, (files, given.case is not None, given.knowledge is not None, given.grade))) > 1:
        raise DeclarationError("give one of FILE, --case, --knowledge and --grade")
    if given.ratings:
        return _rate(given, files, overrides)
    if given.case is not None or given.knowledge is not None:
        return _one(given, overrides)
    return _many(given, files, overrides)


def _one(given: argparse.Namespace, overrides: list[str]) -> Outcome:
    from dspy_mama.core.patient_case import PatientCase
    from dspy_mama.datasets.diseases import disease_named
    from dspy_mama.wiring.diagnose import run_diagnoses

    options = ["tracking=none", "runtime.resume=false", "runtime.progress=false", *overrides]
    if given.knowledge is not None:
        if not given.knowledge.strip():
            raise DeclarationError("--knowledge is empty: name a disease")
        options.append("panel.stages=[knowledge]")
        case = disease_named(" ".join(given.knowledge.split()), source="command line")
    else:
        if not given.case.strip():
            raise DeclarationError("--case is empty: there is nothing to diagnose")
        case = PatientCase("case", {"": given.case}, source="command line")
    settings = compose(options)
    result = asyncio.run(run_diagnoses(settings, cases=[case]))
    if result.run.interrupted:
        raise ExecutionError("interrupted; nothing was finished")
    if not given.json:
        for record in result.records:
            (_print_known if "answers" in record else _print_one)(record)
        print(f"report   {result.folder / 'report.html'}")
        print("\n".join(line for line in (result.summary.get("label_banner"), NOTE) if line))
    _complain(result)
    return result.exit_code, {"folder": str(result.folder), "records": list(result.records)}


def _print_one(record: dict[str, Any]) -> None:
    from dspy_mama.reporting.diagnosis_titles import title_of

    final = record["final"]
    print(f"{title_of(record['method'])}: {final['most_likely'] or 'no diagnosis (' + final['outcome'] + ')'}")
    if final["possible"]:
        print(f"  also possible: {'; '.join(final['possible'])}")
    if final["tests"]:
        print(f"  tests: {'; '.join(final['tests'])}")
    if record["turns"]:
        print(f"  {len(record['turns'])} turns, ended by {record['stopped']}")
    for warning in (record.get("standing") or {}).get("warnings") or ():
        print(f"  mind: {warning}")


def _print_known(record: dict[str, Any]) -> None:
    from dspy_mama.reporting.diagnosis_titles import title_of

    print(title_of(record["method"]))
    grades = record.get("grades") or {}
    for name, entry in record["answers"].items():
        level = (grades.get(name) or {}).get("score")
        shown = entry["text"] or f"nothing that could be read ({entry['outcome']})"
        print(f"  {title_of(name)}{'' if level is None else f' (level {level})'}: {shown}")


def _many(given: argparse.Namespace, files: list[str], overrides: list[str]) -> Outcome:
    from dspy_mama.wiring.diagnose import run_diagnoses, self_grading
    from dspy_mama.wiring.regrade import run_grading

    if files:
        overrides = ["data=table", f"data.path={literal(files[0])}", *overrides]
    settings = compose(overrides)
    if warning := self_grading(settings):
        print(f"mama: {warning}", file=sys.stderr)
    work = run_grading(settings, Path(given.grade)) if given.grade else run_diagnoses(settings)
    result = asyncio.run(work)
    if not given.json:
        _print(result, settings)
    _complain(result)
    return result.exit_code, run_facts(result, "run_seconds") | result.summary


def _print(result: StudyResult, settings: Settings) -> None:
    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting.diagnosis_tables import print_diagnoses

    if result.summary:
        print_diagnoses(result.summary, make_console())
    print(f"run       {result.folder}")
    print(f"report    {result.folder / 'report.html'}")
    if result.tracked:
        print(f"mlflow    run {result.tracked}; look at it with: make ui")
    if result.resumed:
        print(f"resumed   {result.resumed} diagnosis(es) were done before and were not repeated")
    print(NOTE)


def _complain(result: StudyResult) -> None:
    if result.problems:
        print(f"mama: not everything could be logged: {result.problems[0]}", file=sys.stderr)
    if result.run.failed:
        print(f"mama: {result.run.failed} diagnosis(es) failed on the way to the LM", file=sys.stderr)
    if result.exit_code:
        print(f"mama: {'interrupted' if result.run.interrupted else result.unscored}", file=sys.stderr)


def _rate(given: argparse.Namespace, files: list[str], overrides: list[str]) -> Outcome:
    from dspy_mama.wiring.regrade import rate_run

    if not files or overrides:
        raise DeclarationError("--ratings takes the folder of a run alone: mama diagnose RUN --ratings CSV")
    found, written = rate_run(Path(files[0]), Path(given.ratings))
    if not given.json:
        from dspy_mama.cli.console import make_console
        from dspy_mama.reporting.diagnosis_grader_tables import people_table
        from dspy_mama.reporting.printing import show_tables

        show_tables([people_table(found)], make_console())
        print(f"agreement {written}")
    return 0, {**found, "file": str(written)}


DIAGNOSE: Final = Verb("diagnose cases by a panel of doctors and by single models, grade and compare", _arguments, _run)
