"""Every table of a run of the evaluation loop: the paper's five, and what the paper does not count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.reporting.refinement_paper import Summaries, loop_tables, percent, ranged
from dspy_mama.reporting.refinement_view import STATE_WORDS
from dspy_mama.reporting.tables import NONE, Table, usage_table


def refinement_tables(summaries: Summaries) -> list[Table]:
    """Returns Tables I to V beside the paper's figures, then end states and usage."""
    tables = [*loop_tables(summaries), end_states_table(summaries)]
    for name, summary in summaries.items():
        used = usage_table(summary)
        head = ("Role", *used.header[1:])
        title = used.title if len(summaries) == 1 else f"{used.title}: {name}"
        tables.append(Table(title, head, used.rows, used.notes))
    return tables


def end_states_table(summaries: Summaries) -> Table:
    """Returns how runs ended: the stops, and end states that no threshold sees."""
    rows = [
        (f"{label.capitalize()}", *(_share(s["end_states"][state]) for s in summaries.values()))
        for state, label in STATE_WORDS.items()
    ]
    stops = sorted({stop for s in summaries.values() for stop in s["stopped"]})
    rows += [(f"Stopped: {stop}", *(str(s["stopped"].get(stop, 0)) for s in summaries.values())) for stop in stops]
    rows.append(("Returned texts that need review", *(str(s.get("needs_review", NONE)) for s in summaries.values())))
    rows.append(("Passed by the gate, not assessed", *(str(s["passed_by_gate"]) for s in summaries.values())))
    rows.append(("Versions with a reply cut at the token limit", *(str(s["truncated"]) for s in summaries.values())))
    head = ("End state", *(f"{name} (95% CI)" for name in summaries))
    notes = ("Of the returned texts that could be told. A text may be safe and of no help: read this beside Table I.",)
    return Table("End states", head, tuple(rows), notes)


def _share(own: Mapping[str, Any]) -> str:
    return f"{own['count']}/{own['n']} = {ranged(own, percent)}" if own["n"] else "not checked"
