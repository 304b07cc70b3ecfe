"""`mama baseline`: supervised classifiers on gold labels, judged out of fold, beside the LM systems."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Final

from dspy_mama.cli.evaluate import finish
from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.core.errors import DeclarationError
from dspy_mama.wiring.baseline import run_baseline
from dspy_mama.wiring.compose import compose


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "baseline=embedding|tfidf|length|majority|bert|bioclinicalbert names the classifier, baseline.text=answer|pair|"
        "separate what it reads. Every pair is judged by a classifier that saw neither it nor its question."
    )
    parser.add_argument("--out", metavar="FILE", help="also write the predictions there: .jsonl or .csv")
    parser.add_argument("--skip-faulty", action="store_true", help="leave faulty rows out, and say which")


def _run(given: argparse.Namespace) -> Outcome:
    from dspy_mama.datasets import write_predictions

    target = Path(given.out) if given.out else None
    if target is not None and target.suffix not in (".jsonl", ".csv"):
        raise DeclarationError(f"--out {target}: predictions are written as .jsonl or .csv")
    settings = compose(given.overrides)
    slow = settings.baseline.name == "bert" and settings.runtime.progress
    run = run_baseline(settings, drop_faulty=given.skip_faulty, on_fold=_tell if slow else None)
    result = asyncio.run(run)
    if target is not None and result.records:
        write_predictions(result.records, target)
    code, document = finish(result, settings, given.json)
    return code, {**document, "out": None if target is None else str(target)}


def _tell(domain: str, number: int, of: int) -> None:
    print(f"{domain}: fold {number} of {of}", file=sys.stderr)


BASELINE: Final = Verb("cross-validate a supervised classifier on gold labels", _arguments, _run)
