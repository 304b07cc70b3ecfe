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
from dspy_mama.core.wording import counted
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
            f"{report.collection}: {counted(report.documents, 'document')}, {counted(report.chunks, 'chunk')}; "
            f"{report.added} added, {report.updated} updated, {report.removed} removed, {report.kept} kept, "
            f"{report.embedded} embedded, {report.seconds:.1f} s"
        )
    return 0, document


def _info(given: argparse.Namespace, settings: Settings) -> Outcome:
    from dspy_mama.retrieval import IndexCommands, in_words, index_info

    info = index_info(settings.corpus, settings.embedder, settings.retriever)
    document = dataclasses.asdict(info)
    if not given.json:
        for name, value in (document | {"way": in_words(info.way)}).items():
            print(f"{name:<14} {_shown(value)}")
        if not info.fresh:
            print(f"stale: {IndexCommands.of(settings.corpus, settings.embedder, settings.retriever).to_build}")
    return 0, document


def _search(given: argparse.Namespace, settings: Settings, query: str) -> Outcome:
    from dspy_mama.retrieval import in_words, opened_index

    with opened_index(settings.corpus, settings.embedder, settings.retriever) as index:
        found, way = index.search(query, DOMAINS), index.way()
    document: dict[str, Any] = {d: [dataclasses.asdict(p) for p in found[d]] for d in DOMAINS}
    document["way"] = way
    if not given.json:
        print(f"way: {in_words(way)}")
        for domain in DOMAINS:
            print(f"{domain}{'' if found[domain] else ': nothing found'}")
            for passage in found[domain]:
                print(f"  {passage.score:.3f}  {passage.title} / {passage.section}  [{passage.language}] {passage.url}")
                print(f"         {' '.join(passage.text.split())[:160]}")
    return 0, document


def _shown(value: Any) -> str:
    """Returns a value of the index's facts as a person reads it."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(item)}" for name, item in value.items()) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (", ".join(value) or "-") if isinstance(value, tuple) else str(value)


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
