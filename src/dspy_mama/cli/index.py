"""`mama index fetch | build | info | search "..." | bench`: the corpus and its Chroma collection."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any, Final

from dspy_mama.cli.bench import bench
from dspy_mama.cli.fetch import fetch
from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.errors import DeclarationError
from dspy_mama.settings import Settings
from dspy_mama.wiring.compose import compose


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("fetch", "build", "info", "search", "bench"))
    parser.add_argument("--rebuild", action="store_true", help="drop the collection first; repairs a corrupt store")
    parser.add_argument(
        "--write-vectors",
        action="store_true",
        help="build, bench: write the vectors of documents or queries beside them, so that none need be made again",
    )
    parser.add_argument("--queries", metavar="FILE", help="bench: queries with their facts (default: the shipped ones)")


def _build(given: argparse.Namespace, settings: Settings) -> Outcome:
    from dspy_mama.retrieval import build_index, export_vectors

    def progress(done: int, total: int) -> None:
        if sys.stderr.isatty() and total:
            print(
                f"\rembedding and storing {done} of {total} chunks", end="" if done < total else "\n", file=sys.stderr
            )

    report = build_index(
        settings.corpus, settings.embedder, settings.retriever, rebuild=given.rebuild, progress=progress
    )
    if given.write_vectors:
        written = export_vectors(settings.corpus, settings.embedder, settings.retriever)
        print(f"written: {written}", file=sys.stderr)
    document = dataclasses.asdict(report)
    if not given.json:
        print(
            f"{report.collection}: {report.documents} documents, {report.chunks} chunks; "
            f"{report.added} added, {report.updated} updated, {report.removed} removed, {report.kept} kept, "
            f"{report.embedded} embedded, {report.seconds:.1f} s"
        )
    return 0, document


def _info(given: argparse.Namespace, settings: Settings) -> Outcome:
    from dspy_mama.retrieval import IndexCommands, index_info

    info = index_info(settings.corpus, settings.embedder, settings.retriever)
    document = dataclasses.asdict(info)
    if not given.json:
        for name, value in document.items():
            print(f"{name:<14} {value if not isinstance(value, tuple) else ', '.join(value) or '-'}")
        if not info.fresh:
            command = IndexCommands.of(settings.corpus, settings.embedder, settings.retriever).build
            print(f"stale: run `{command}`")
    return 0, document


def _search(given: argparse.Namespace, settings: Settings, query: str) -> Outcome:
    from dspy_mama.retrieval import search_index

    found = search_index(settings.corpus, settings.embedder, settings.retriever, query)
    document: dict[str, list[dict[str, Any]]] = {d: [dataclasses.asdict(p) for p in found[d]] for d in DOMAINS}
    if not given.json:
        for domain in DOMAINS:
            print(f"{domain}")
            for passage in found[domain]:
                print(f"  {passage.score:.3f}  {passage.title} / {passage.section}  [{passage.language}] {passage.url}")
                print(f"         {' '.join(passage.text.split())[:160]}")
    return 0, document


def _run(given: argparse.Namespace) -> Outcome:
    words = [part for part in given.overrides if "=" not in part]
    settings = compose([part for part in given.overrides if "=" in part])
    if given.action == "search":
        if len(words) != 1:
            raise DeclarationError('index search takes one query in quotes: mama index search "..."')
        return _search(given, settings, words[0])
    if words:
        raise DeclarationError(f"not understood: {' '.join(words)}")
    if given.action == "fetch":
        return fetch(given, settings)
    return {"build": _build, "info": _info, "bench": bench}[given.action](given, settings)


INDEX: Final = Verb("fetch documents; build, describe, search or measure their index", _arguments, _run)
