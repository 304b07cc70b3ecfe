"""`mama index fetch`: documents from their sources to a folder of the user's."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from dspy_mama.cli.verb import Outcome
from dspy_mama.core.wording import counted
from dspy_mama.settings import Settings


def fetch(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Fetches; exit 0 where there are documents, with what failed as warnings."""
    from dspy_mama.retrieval import IndexCommands
    from dspy_mama.retrieval.sources import fetch_corpus

    def progress(done: int, title: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{counted(done, 'document')}, last: {title[:60]}", end="", file=sys.stderr)

    report = fetch_corpus(settings.corpus, progress=progress)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    for fault in report.faults:
        print(f"warning: {fault}", file=sys.stderr)
    if not given.json:
        print(
            f"{report.folder}: {counted(report.written, 'document')} written, {report.unchanged} unchanged, "
            f"{report.earlier} of earlier fetches kept, {counted(len(report.faults), 'warning')}; "
            f"{counted(report.requests, 'request')}, {counted(report.cached, 'page')} from the cache, "
            f"{report.received / 1e6:.1f} MB, {report.seconds:.1f} s"
        )
        command = IndexCommands.of(settings.corpus, settings.embedder, settings.retriever).build
        print(f"next: `{command}`")
    return 0, dataclasses.asdict(report)
