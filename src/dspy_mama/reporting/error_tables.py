"""The tables of an error analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.tables import NONE, Table, delta_title, figure, phase_title

SHOWN: Final = 8
"""Ids named in a cell; the JSON has them all."""

SHOWN_GROUPS: Final = 15
"""Groups of a kind in the table, the largest first."""

_GROUP_TITLES: Final = {"specialty": "specialty", "language": "language", "answer_length": "length of answer"}


def _named(ids: Sequence[str]) -> str:
    more = len(ids) - SHOWN
    return ", ".join(ids[:SHOWN]) + (f", and {more} more" if more > 0 else "") or NONE


def error_tables(analysis: Mapping[str, Any]) -> tuple[Table, ...]:
    """Returns the tables of what `analyse_errors` found."""
    runs = analysis["runs"]
    tables = [_by_phase(runs), _steps(runs), _common(analysis["common"], len(runs))]
    tables += [_groups(runs, kind) for kind in _GROUP_TITLES]
    return tuple(table for table in tables if table.rows)


def _by_phase(runs: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            name, phase_title(phase), domain, str(found["n"]), str(len(found["fp"])), str(len(found["fn"])),
            str(len(found["unscored"])), f"FP {_named(found['fp'])}; FN {_named(found['fn'])}",
        )
        for name, own in runs.items()
        for phase, domains in own["phases"].items()
        for domain, found in domains.items()
        if found["n"] or found["unscored"]
    )  # fmt: skip
    header = ("Run", "Phase", "Domain", "n", "FP", "FN", "Unscored", "Pairs")
    return Table("Errors by phase and domain", header, rows, ("FP: called risky, gold is safe. FN: the other way.",))


def _steps(runs: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            name, delta_title(step), domain, str(found["n"]),
            *(str(len(found[part])) for part in ("repaired", "broken", "still_wrong")),
            f"repaired {_named(found['repaired'])}; broken {_named(found['broken'])}",
        )
        for name, own in runs.items()
        for step, domains in own["steps"].items()
        for domain, found in domains.items()
        if found["n"]
    )  # fmt: skip
    header = ("Run", "Step", "Domain", "n", "Repaired", "Newly broken", "Still wrong", "Pairs")
    return Table("What each phase repaired and newly broke", header, rows)


def _common(common: Mapping[str, Any] | None, runs: int) -> Table:
    rows = tuple(
        (phase_title(phase), domain, str(found["n"]), _named(found["fp"]), _named(found["fn"]))
        for phase, domains in (common or {}).items()
        for domain, found in domains.items()
        if found["n"]
    )
    return Table(
        f"Errors common to all {runs} runs", ("Phase", "Domain", "n", "False positives", "False negatives"), rows
    )


def _groups(runs: Mapping[str, Any], kind: str) -> Table:
    rows = []
    for name, own in runs.items():
        groups = sorted(own["groups"][kind].items(), key=lambda item: -item[1]["pairs"])
        groups = groups if kind != "answer_length" else list(own["groups"][kind].items())
        for value, found in groups[:SHOWN_GROUPS]:
            cells = [
                f"{found[d]['fp']} / {found[d]['fn']} of {found[d]['n']}" if found[d]["n"] else NONE for d in DOMAINS
            ]
            n = sum(found[d]["n"] for d in DOMAINS)
            wrong = sum(found[d]["fp"] + found[d]["fn"] for d in DOMAINS)
            rows.append((name, value, str(found["pairs"]), *cells, figure(wrong / n if n else None)))
    header = ("Run", _GROUP_TITLES[kind].capitalize(), "Pairs", *DOMAINS, "Error rate")
    notes = ("FP / FN of scored pairs, per domain. The error rate is over all scored labels.",)
    return Table(f"Errors of the final verdict by {_GROUP_TITLES[kind]}", header, tuple(rows), notes)
