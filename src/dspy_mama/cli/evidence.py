"""`mama evidence RUN`: what MA2 searched, found and cited, and what it changed."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Any, Final

from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.core.errors import DeclarationError


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--without", metavar="RUN", help="the same pairs audited without evidence: what did it change?")
    parser.add_argument("--check", action="store_true", help="ask the LM whether each cited passage supports its note")


def _run(given: argparse.Namespace) -> Outcome:
    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting import label_banner
    from dspy_mama.reporting.evidence_tables import evidence_tables
    from dspy_mama.reporting.printing import show_tables
    from dspy_mama.wiring.compose import compose
    from dspy_mama.wiring.evidence import check_citations, diagnose_evidence, load_records

    names = [part for part in given.overrides if "=" not in part or Path(part).is_dir()]
    overrides = [part for part in given.overrides if part not in names]
    if len(names) != 1:
        raise DeclarationError("evidence takes one run folder: mama evidence mlruns/runs/RUN [--without RUN]")
    if overrides and not given.check:
        raise DeclarationError(
            f"{' '.join(overrides)}: settings choose corpus and LM of --check; nothing else uses them"
        )
    records = load_records(names[0])
    document: dict[str, Any] = diagnose_evidence(records, load_records(given.without) if given.without else None)
    if given.check:
        document["support"] = asyncio.run(check_citations(records, compose(overrides)))
    if not given.json:
        console = make_console()
        show_tables(evidence_tables(document), console)
        banner = label_banner({"judge": (document.get("support") or {}).get("models", [])})
        if banner:
            console.print(banner)
    return 0, document


EVIDENCE: Final = Verb("say what evidence a run found, cited and changed", _arguments, _run)
