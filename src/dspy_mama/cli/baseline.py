"""`mama baseline`: supervised classifiers on gold labels, judged out of fold, beside the LM systems."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dspy_mama.cli.evaluate import finish
from dspy_mama.cli.targets import check_target
from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.settings import Settings
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.baseline import run_baseline
from dspy_mama.wiring.compose import compose


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "baseline=embedding|tfidf|length|majority|bert|bioclinicalbert names the classifier, baseline.text=answer|pair|"
        "separate what it reads. Every pair is judged by a classifier that saw neither it nor its question."
    )
    parser.add_argument("--out", metavar="FILE", help="also write the predictions there: .jsonl or .csv")
    parser.add_argument(
        "--head",
        metavar="FILE",
        help="train on all pairs and write the head, for system=exemplar system.head=FILE",
    )
    parser.add_argument("--languages", metavar="L,L", default="", help="languages that a head learns from together")
    parser.add_argument("--skip-faulty", action="store_true", help="leave faulty rows out, and say which")


def _run(given: argparse.Namespace) -> Outcome:
    from dspy_mama.datasets import write_predictions

    settings = compose(given.overrides)
    target = check_target(Path(given.out), settings, "predictions") if given.out else None
    if given.head:
        given.head = str(check_target(Path(given.head), settings, "heads", option="--head", endings=(".json",)))
        return _head(given, settings)
    slow = settings.baseline.name == "bert" and settings.runtime.progress
    run = run_baseline(settings, drop_faulty=given.skip_faulty, on_fold=_tell if slow else None)
    result = asyncio.run(run)
    if target is not None and result.records:
        write_predictions(result.records, target)
    code, document = finish(result, settings, given.json)
    # An interrupted run has no program yet.
    cut = RunStore.open(result.folder).load("program").get("truncation") if result.summary else None
    if cut and not given.json:
        print(f"cut       {cut['cut']} of {cut['pairs']} pairs did not fit {cut['limit']} tokens: {cut['rule']}")
        print(f"unknown   {cut['unknown_share']:.1%} of the tokens are not in the model's vocabulary")
    return code, {**document, "out": None if target is None else str(target), "truncation": cut}


def _head(given: argparse.Namespace, settings: Settings) -> Outcome:
    from dspy_mama.wiring.exemplar import write_head

    languages = [part.strip() for part in given.languages.split(",") if part.strip()]
    head = write_head(settings, Path(given.head), languages)
    if not given.json:
        for name, own in head.cross_validation["figures"].items():
            print(f"{name:<10} " + "  ".join(_shown(domain, own[domain]) for domain in head.domains))
        print(f"head       {given.head} ({head.hash})\n{head.limits}")
    return 0, {"head": given.head, "hash": head.hash, "training": head.training, **head.cross_validation}


def _shown(domain: str, figures: Mapping[str, Mapping[str, Any]]) -> str:
    own = figures["auc"]
    if own["value"] is None:
        return f"{domain} AUC -"
    return f"{domain} AUC {own['value']:.2f} ({own['ci95'][0]:.2f} to {own['ci95'][1]:.2f})"


def _tell(domain: str, number: int, of: int) -> None:
    print(f"{domain}: fold {number} of {of}", file=sys.stderr)


BASELINE: Final = Verb("cross-validate a supervised classifier on gold labels", _arguments, _run)
