"""`mama audit FILE` or `mama audit --question Q --answer A`: label pairs that have no gold."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any, Final

from dspy_mama.cli.targets import check_target
from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.core.cases import DOMAINS, QAPair
from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.settings.overrides import literal
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.index import ensure_shipped_index
from dspy_mama.wiring.study import run_study

NOTE: Final = "No substitute for a clinical decision or for the risk management of a device."


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--question", help="a patient's question")
    parser.add_argument("--answer", help="the chatbot's answer to it")
    parser.add_argument("--out", help="where labels go: .jsonl or .csv (default: FILE.audit.jsonl)")
    parser.add_argument("--skip-faulty", action="store_true", help="leave faulty rows out, and say which")


def _split(given: argparse.Namespace) -> tuple[Path | None, list[str]]:
    files = [part for part in given.overrides if "=" not in part]
    if len(files) > 1:
        raise DeclarationError(f"one file at a time, please: {', '.join(files)}")
    return (Path(files[0]) if files else None), [part for part in given.overrides if "=" in part]


def _run(given: argparse.Namespace) -> Outcome:
    file, overrides = _split(given)
    single = given.question is not None or given.answer is not None
    if single == (file is not None):
        raise DeclarationError("give either a FILE of pairs, or --question and --answer")
    return _one(given, overrides) if single else _file(given, file or Path(), overrides)


def _one(given: argparse.Namespace, overrides: list[str]) -> Outcome:
    for name in ("question", "answer"):
        if not (getattr(given, name) or "").strip():
            raise DeclarationError(f"--{name} is missing or empty: an audit needs both the question and the answer")
    settings = compose(["tracking=none", "runtime.resume=false", "runtime.progress=false", *overrides])
    ensure_shipped_index(settings)
    pair = QAPair("pair", given.question, given.answer, source="command line")
    result = asyncio.run(run_study(settings, verb="audit", pairs=[pair]))
    if result.run.interrupted:
        raise ExecutionError("interrupted; the pair was not audited")
    record = result.records[0]
    if not given.json:
        _print(record, result.summary.get("label_banner"))
    return result.exit_code, record


def _print(record: dict[str, Any], banner: str | None) -> None:
    final = record["phases"][record["final_phase"]]
    for domain in DOMAINS:
        verdict = final[domain]
        chance = "" if verdict["probability"] is None else f"  p={verdict['probability']:.2f}"
        print(f"{domain:<8} {record['verdicts'][domain]}{chance}")
        print(f"         {verdict['reason'] or verdict['error'] or ''}")
    for passage in _cited(record):
        read = f"read on {passage['accessed']}" if passage["accessed"] else ""
        facts = (passage["title"], passage["section"], passage["url"], read)
        print(f"cited    {', '.join(fact for fact in facts if fact)}")
    print("review   " + ("needed: a domain is undetermined" if record["needs_review"] else "no domain is undetermined"))
    print("\n".join(line for line in (banner, NOTE) if line))


def _cited(record: dict[str, Any]) -> list[dict[str, Any]]:
    verified = record["phases"].get("verification", {})
    cited = [p for verdict in verified.values() for p in verdict["passages"] if p["cited"]]
    return list({passage["id"]: passage for passage in cited}.values())


def _file(given: argparse.Namespace, file: Path, overrides: list[str]) -> Outcome:
    from dspy_mama.datasets import write_predictions

    settings = compose(["data=table", f"data.path={literal(str(file))}", *overrides])
    # Found now, not when every label was paid for.
    target = Path(given.out) if given.out else file.with_name(file.name + ".audit.jsonl")
    target = check_target(target, settings, "labels")
    ensure_shipped_index(settings)
    result = asyncio.run(run_study(settings, verb="audit", drop_faulty=given.skip_faulty))
    if result.run.interrupted:
        print(f"mama: interrupted; {result.run.done} pair(s) are kept in {result.folder}", file=sys.stderr)
        return result.exit_code, {"folder": str(result.folder), "interrupted": True}
    write_predictions(result.records, target)
    verdicts = result.summary["verdicts"]
    if not given.json:
        for domain in DOMAINS:
            print(f"{domain:<8} " + ", ".join(f"{count} {name}" for name, count in verdicts[domain].items()))
        print(f"labels   {target}\nreport   {result.folder / 'report.html'}")
        print("\n".join(line for line in (result.summary.get("label_banner"), NOTE) if line))
    if result.exit_code:
        print(f"mama: {result.unscored}", file=sys.stderr)
    document = {"out": str(target), "folder": str(result.folder), "verdicts": verdicts, "exit_code": result.exit_code}
    return result.exit_code, {**document, "unscored_rate": result.unscored.rate, "n": result.summary["n"]}


AUDIT: Final = Verb("label pairs from csv, jsonl, parquet or xlsx, or one pair; resumable", _arguments, _run)
