"""`mama index bench`: the ways of searching, beside one another."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dspy_mama.cli.console import make_console
from dspy_mama.cli.verb import Outcome
from dspy_mama.settings import Settings


def bench(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Runs the retrieval benchmark on the configured corpus and prints its tables."""
    from dspy_mama.reporting.printing import show_tables
    from dspy_mama.reporting.retrieval_tables import retrieval_tables
    from dspy_mama.wiring.index import ensure_shipped_index
    from dspy_mama.wiring.retrieval_bench import export_query_vectors, run_retrieval_bench

    def progress(name: str) -> None:
        if sys.stderr.isatty():
            print(f"searching: {name.strip()}", file=sys.stderr)

    ensure_shipped_index(settings)
    queries = Path(given.queries) if given.queries else None
    if given.write_vectors:
        print(f"written: {export_query_vectors(settings, queries)}", file=sys.stderr)
    document = run_retrieval_bench(settings, queries, progress)
    if not given.json:
        show_tables(retrieval_tables(document), make_console())
    return 0, document
