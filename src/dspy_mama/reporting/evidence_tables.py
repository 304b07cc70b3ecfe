"""The tables of a run's evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.tables import NONE, Table, figure, phase_title

_SHOWN: Final = 10
"""Documents in the table of sources."""


def evidence_tables(document: Mapping[str, Any]) -> tuple[Table, ...]:
    """Returns the tables of `mama evidence`.

    Args:
        document: `retrieval`, and where they were asked for `effect` and `support`.
    """
    facts = document["retrieval"]
    tables = [_found(facts), _sources(facts)]
    if document.get("effect"):
        tables.append(_effect(document["effect"]))
    if document.get("support"):
        tables.append(_support(document["support"]))
    return tuple(table for table in tables if table.rows)


def _found(facts: Mapping[str, Any]) -> Table:
    rows = []
    for name, row in [*facts["by_domain"].items(), ("all", facts)]:
        counts = (str(row[key]) for key in ("verifications", "searched", "empty"))
        rows.append((name, *counts, figure(row["hit_rate"]), figure(row["citation_rate"])))
    notes = (
        f"{facts['passages']} passages of {facts['documents']} documents shown, {facts['citations']} cited; "
        f"{facts['invalid_citations']} citation(s) named a passage that was not shown",
    )
    header = ("Domain", "Verified", "Searched", "Nothing found", "Hit rate", "Citation rate")
    return Table("Evidence found and cited in MA2", header, tuple(rows), notes)


def _sources(facts: Mapping[str, Any]) -> Table:
    rows = [
        (kind, name, str(row["passages"]), str(row["cited"]))
        for kind in ("collection", "language", "document")
        for name, row in list(facts[f"by_{kind}"].items())[:_SHOWN]
    ]
    return Table("Where the passages come from", ("By", "Source", "Passages", "Cited"), tuple(rows))


def _effect(effect: Mapping[str, Any]) -> Table:
    rows = []
    for phase in ("verification", "final"):
        for domain in DOMAINS:
            if phase not in effect:
                continue
            row = effect[phase][domain]
            counts = (str(row[key]) for key in ("n", "changed", "to_risky", "to_safe", "other"))
            gold = (NONE if row[key] is None else str(row[key]) for key in ("corrected", "broken"))
            rows.append((phase_title(phase), domain, *counts, *gold, figure(row["p_value"])))
    header = ("Phase", "Domain", "n", "Changed", "To risky", "To safe", "Other", "Corrected", "Broken", "p (McNemar)")
    return Table("Verdicts that evidence changed", header, tuple(rows))


def _support(support: Mapping[str, Any]) -> Table:
    rows = [
        (domain, str(row["checked"]), *(str(row["verdicts"].get(name, 0)) for name in support["scale"]),
         str(row["unscored"]), figure(row["supported_share"]))
        for domain, row in support["by_domain"].items()
    ]  # fmt: skip
    notes = (f"{support['missing']} cited passage(s) are no longer in the corpus",) if support["missing"] else ()
    header = ("Domain", "Checked", *(name.capitalize() for name in support["scale"]), "Unscored", "Supported")
    return Table("Does the cited passage support the note?", header, tuple(rows), notes)
