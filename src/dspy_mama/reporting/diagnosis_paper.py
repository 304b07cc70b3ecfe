"""Our figures beside those that the paper on MAC prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dspy_mama.core.disease_knowledge import KNOWLEDGE
from dspy_mama.reporting import diagnosis_published as published
from dspy_mama.reporting.diagnosis_titles import title_of
from dspy_mama.reporting.tables import NONE, Table, figure
from dspy_mama.scoring.diagnosis import UNITS

Summary = Mapping[str, Any]


def paper_table(summary: Summary) -> Table:
    """Returns our accuracy beside the paper's Tables 1 and 2."""
    rows = []
    for stage in (stage for stage in summary["stages"] if stage != KNOWLEDGE):
        for method, units in summary["scores"].get(stage, {}).items():
            cells = [figure(None if (v := (units.get(u) or {}).get("value")) is None else 100 * v, 2) for u in UNITS]
            rows.append((title_of(stage), f"ours: {title_of(method)}", *cells, f"n = {_n(units)}"))
        for printed in published.ACCURACIES:
            if printed.stage == stage:
                cells = [figure(getattr(printed, unit), 2) for unit in UNITS]
                rows.append((title_of(stage), f"paper: {printed.setting}", *cells, printed.note))
    header = ("Stage", "Setting", "Most likely %", "Possible %", "Tests %", "Note")
    notes = [
        f"Paper: Tables 1 and 2, {published.CASES} cases, as far as its text prints them (- = not printed); MAC with "
        f"GPT-4 cost US$ {published.COST['primary']:.2f} (primary) and {published.COST['follow_up']:.2f} (follow-up) a "
        "case.",
    ]
    if summary["cases"] != published.CASES:
        notes.append("These are not the paper's data or model: the rows stand beside each other, they do not compare.")
    return Table("Beside the paper (Tables 1 and 2)", header, tuple(rows), tuple(notes))


def _n(units: Mapping[str, Any]) -> int:
    return max((score["n"] for score in units.values()), default=0)


def sweeps_table() -> Table:
    """Returns the paper's findings on what it varied."""
    rows: Sequence[tuple[str, str, str]] = published.SWEEPS
    note = "Vary them with: python experiments/diagnosis_panel.py -m panel.doctors=2,3,4,5 (or panel.rounds=13,25, ...)"
    return Table("What the paper varied", ("Varied", "Values", "The paper's finding"), tuple(rows), (note,))


def sweep_table(summaries: Mapping[str, Summary]) -> Table:
    """Returns the runs of a sweep beside each other: accuracy in percent, and new tokens a case.

    Args:
        summaries: `summary.json` by setting.
    """
    rows = [
        (title_of(stage), name, title_of(method), *_percent(summary, stage, method), _tokens(summary, stage, method))
        for stage in dict.fromkeys(stage for summary in summaries.values() for stage in summary["stages"])
        if stage != KNOWLEDGE
        for name, summary in summaries.items()
        for method in summary["scores"].get(stage, {})
    ]
    for printed in published.ACCURACIES:
        cells = [figure(getattr(printed, unit), 2) for unit in UNITS]
        rows.append((title_of(printed.stage), "paper", printed.setting, *cells, NONE))
    header = ("Stage", "Setting", "Method", "Most likely %", "Possible %", "Tests %", "New tokens a case")
    note = f"The paper's {published.CASES} cases and models are not ours: the rows stand beside each other."
    return Table("The sweep beside the paper", header, tuple(rows), (note,))


def knowledge_sweep(summaries: Mapping[str, Summary]) -> Table:
    """Returns what the runs of a sweep know of their diseases; without rows where nobody asked."""
    rows = [
        (
            name,
            title_of(method),
            str(summary["diseases"]),
            figure(mean_of_sides(sides), 2),
            _tokens(summary, KNOWLEDGE, method),
        )
        for name, summary in summaries.items()
        for method, sides in summary["scores"].get(KNOWLEDGE, {}).items()
    ]
    header = ("Setting", "Method", "Diseases", "Mean level", "New tokens a disease")
    return Table("What is known of diseases", header, tuple(rows), ("Mean over all graded sides; Likert 5 to 1.",))


def mean_of_sides(sides: Mapping[str, Any]) -> float | None:
    """Returns the mean level over all graded entries of a method; None without any."""
    graded = [(score["mean_level"], score["n"]) for score in sides.values() if score["n"]]
    return sum(level * n for level, n in graded) / sum(n for _, n in graded) if graded else None


def _percent(summary: Summary, stage: str, method: str) -> list[str]:
    units = summary["scores"].get(stage, {}).get(method, {})
    return [figure(None if (v := (units.get(u) or {}).get("value")) is None else 100 * v, 2) for u in UNITS]


def _tokens(summary: Summary, stage: str, method: str) -> str:
    used = summary["usage"].get(stage, {}).get(method)
    value = used["per_case"]["completion_tokens"] if used else None
    return "unknown" if value is None else f"{value:,.0f}"
