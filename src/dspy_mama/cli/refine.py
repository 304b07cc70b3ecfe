"""`mama refine`: mend one answer, a file of them, or a data set; hold the evaluators against people's ratings."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any, Final

from dspy_mama.cli.results import run_facts
from dspy_mama.cli.targets import check_target
from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.settings import Settings
from dspy_mama.settings.overrides import literal
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.lifecycle import StudyResult

NOTE: Final = "No substitute for a clinical decision or for the risk management of a device."


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "FILE: csv, jsonl, parquet or xlsx of questions, with or without answers to mend. Without FILE and --question, "
        "the data set of data=... is mended. With --ratings or --sheet, FILE is the folder of a run."
    )
    parser.add_argument("--question", help="a patient's question")
    parser.add_argument("--answer", help="an answer to mend; without one, it is written")
    parser.add_argument("--out", help="where mended answers go: .jsonl or .csv (default: FILE.refined.jsonl)")
    parser.add_argument("--ratings", metavar="CSV", help="hold a run's evaluators against people's ratings")
    parser.add_argument("--sheet", metavar="CSV", help="write a sheet on which people rate a run's texts")


def _run(given: argparse.Namespace) -> Outcome:
    paths = [part for part in given.overrides if "=" not in part or Path(part).exists()]
    overrides = [part for part in given.overrides if part not in paths]
    if len(paths) > 1:
        raise DeclarationError(f"one file at a time, please: {', '.join(paths)}")
    path = Path(paths[0]) if paths else None
    if given.ratings or given.sheet:
        return _rate(given, path, overrides)
    if path is not None and path.is_dir():
        raise DeclarationError(f"{path}: this is a folder; mama report {path} rebuilds a run's report")
    if given.question is None and given.answer is None:
        return _many(given, path, overrides)
    if path is not None:
        raise DeclarationError("give either a FILE, or --question")
    if given.out:
        raise DeclarationError("--out goes with a FILE or a data set; one answer is printed")
    return _one(given, overrides)


def _compose(overrides: list[str], target: Path | None = None) -> Settings:
    from dspy_mama.wiring.refine import uses_auditor

    settings = compose(overrides)
    if target is not None:
        check_target(target, settings, "mended answers")
    if uses_auditor(settings):
        from dspy_mama.wiring.index import ensure_shipped_index

        ensure_shipped_index(settings)
    return settings


def _one(given: argparse.Namespace, overrides: list[str]) -> Outcome:
    from dspy_mama.core.chat_request import ChatRequest
    from dspy_mama.wiring.refine import run_refinement

    if not (given.question or "").strip():
        raise DeclarationError("--question is missing or empty: there is nothing to answer")
    if given.answer is not None and not given.answer.strip():
        raise DeclarationError("--answer is empty; leave it out to have one written")
    settings = _compose(["tracking=none", "runtime.resume=false", "runtime.progress=false", *overrides])
    if not settings.tracking.store_text:
        raise DeclarationError(
            "tracking.store_text=false keeps no texts: a mended answer needs tracking.store_text=true"
        )
    request = ChatRequest("answer", given.question, given.answer, source="command line")
    result = asyncio.run(run_refinement(settings, requests=[request]))
    if result.run.interrupted:
        raise ExecutionError("interrupted; the answer was not mended")
    record = result.records[0]
    if not given.json:
        _print_one(record, result.summary.get("label_banner"))
        print(f"report   {result.folder / 'report.html'}")
    return result.exit_code, {**record, "folder": str(result.folder)}


def _print_one(record: dict[str, Any], banner: str | None) -> None:
    from dspy_mama.reporting.refinement_view import view_of

    view = view_of(record)
    for version in view["versions"]:
        what = "accepted" if version["accepted"] else "not assessed" if not version["assessed"] else "not accepted"
        stage = ", final check" if version["stage"] == "final_check" else ""
        print(f"version {version['number']}: AMA {version['ama']}, SRA {version['sra']}, {what}{stage}")
        for own in version["assessments"]:
            reasons = [f"{flag['name']}: {flag['reason']}" for flag in own["flags"]] or [own["reason"] or own["error"]]
            print(*(f"  {own['evaluator']:<10} {reason or ''}".rstrip() for reason in reasons), sep="\n")
    final = record["final"] or {}
    text = [version["text"] for version in view["versions"] if version["number"] == final.get("version")]
    print(f"\n{text[0] if text and text[0] else 'no text'}\n")
    failed = [f"error: {record['error']}"] if record.get("error") else []
    failed += [f"no text: {version['error']}" for version in view["versions"] if version["error"]]
    notes = [
        *view["states"],
        *failed,
        *record["warnings"],
        *(["not accepted: needs review"] if view["needs_review"] else []),
    ]
    print(f"end      {view['stopped']}" + (f" Note: {'; '.join(notes)}." if notes else ""))
    print("\n".join(line for line in (f"cost     {view['cost']}", view["helpfulness"], banner, NOTE) if line))


def _many(given: argparse.Namespace, file: Path | None, overrides: list[str]) -> Outcome:
    from dspy_mama.reporting.mended import write_mended
    from dspy_mama.wiring.refine import run_refinement

    default = file.with_name(file.name + ".refined.jsonl") if file else None
    target = Path(given.out).expanduser() if given.out else default
    table = ["data=table", f"data.path={literal(str(file))}"] if file else []
    settings = _compose([*table, *overrides], target)
    if target is not None and not settings.tracking.store_text:
        raise DeclarationError("tracking.store_text=false keeps no texts: mended answers need tracking.store_text=true")
    result = asyncio.run(run_refinement(settings))
    if target is not None and not result.run.interrupted:
        write_mended(result.records, target)
    if not given.json:
        _print_many(result, settings, target)
    if result.run.failed:
        again = "the same command asks again for what is missing"
        print(f"mama: {result.run.failed} answer(s) failed on the way to the LM; {again}", file=sys.stderr)
    if result.run.interrupted:
        print(f"mama: interrupted; {result.run.done} answer(s) are kept in {result.folder}", file=sys.stderr)
    elif result.exit_code:
        print(f"mama: {result.unscored}", file=sys.stderr)
    return result.exit_code, _document(result, target)


def _document(result: StudyResult, target: Path | None) -> dict[str, Any]:
    return {
        **run_facts(result, "wall_seconds"),
        "out": str(target) if target else None,
        "unscored_rate": result.unscored.rate,
        **{name: value for name, value in result.summary.items() if name != "failed"},
        "not_converged": result.summary.get("failed"),
    }


def _print_many(result: StudyResult, settings: Settings, target: Path | None) -> None:
    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting.printing import show_tables
    from dspy_mama.reporting.refinement_tables import refinement_tables

    if result.summary:
        show_tables(refinement_tables({"this run": result.summary}), make_console())
    if result.resumed:
        print(f"resumed   {result.resumed} answer(s) were done before and were not repeated")
    if result.run.interrupted:
        return
    if target is not None:
        print(f"answers   {target}")
    print(f"run       {result.folder}\nreport    {result.folder / 'report.html'}")
    if result.tracked:
        experiment = settings.tracking.experiment.replace("{data}", settings.data.name)
        print(f"mlflow    run {result.tracked} in experiment {experiment}")
    if result.problems:
        print(f"mama: not everything could be logged: {result.problems[0]}", file=sys.stderr)
    print("\n".join(line for line in (result.summary.get("label_banner"), NOTE) if line))


def _rate(given: argparse.Namespace, folder: Path | None, overrides: list[str]) -> Outcome:
    from dspy_mama.wiring.refine_ratings import calibrate_run, sheet_for

    if folder is None or overrides or given.question is not None or given.answer is not None or given.out:
        raise DeclarationError("--ratings and --sheet take the folder of a run alone: mama refine RUN --ratings CSV")
    if given.ratings and given.sheet:
        raise DeclarationError("either write a sheet (--sheet) or read ratings (--ratings)")
    if given.sheet:
        target = Path(given.sheet)
        count = sheet_for(folder, target)
        if not given.json:
            print(f"sheet    {target}: {count} text(s) to rate (ama 0 to 9, sra 1 to 5)")
        return 0, {"sheet": str(target), "n": count}
    found, written = calibrate_run(folder, Path(given.ratings))
    if not given.json:
        from dspy_mama.cli.console import make_console
        from dspy_mama.reporting.printing import show_tables
        from dspy_mama.reporting.refinement_calibration import calibration_tables

        show_tables(calibration_tables(found), make_console())
        print(f"agreement {written}")
    return 0, {**found, "file": str(written)}


REFINE: Final = Verb("mend one answer, a file or a data set until both evaluators accept", _arguments, _run)
