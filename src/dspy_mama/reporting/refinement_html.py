"""One HTML file a run of the evaluation loop: why each answer was changed, versions side by side.

Questions, answers, plans and reasons are untrusted text: the template escapes all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.reporting.page import inline, model_lines, render_page, write_page
from dspy_mama.reporting.refinement import NO_SUBSTITUTE
from dspy_mama.reporting.refinement_figures import CAPTIONS, loop_figures, loop_words
from dspy_mama.reporting.refinement_paper import number as digits
from dspy_mama.reporting.refinement_paper import percent, ranged
from dspy_mama.reporting.refinement_tables import refinement_tables
from dspy_mama.reporting.refinement_view import status_of, view_of
from dspy_mama.scoring.refinement import CATEGORIES, PRINCIPLES

Record = Mapping[str, Any]

MAX_ITEMS: Final = 2000
"""Answers shown at most: more would make a page that no browser filters quickly."""

_FIRST: Final = ("unscored", "not converged", "converged", "passed by the gate")
"""Order in which answers are kept where not all can be shown."""


def render_refinement(
    records: Sequence[Record],
    summary: Mapping[str, Any],
    *,
    title: str = "Evaluation loop",
    context: Sequence[str] = (),
    name: str = "this run",
) -> str:
    """Returns the report of a run as one self-contained page.

    Args:
        records: Rows of `records.jsonl`.
        summary: What `summarise_loop` made of them.
        title: Heading of the page.
        context: Lines below it, such as the run's id, its data and its settings.
        name: The run's column in the tables.
    """
    shown = records if len(records) <= MAX_ITEMS else sorted(records, key=_urgency)[:MAX_ITEMS]
    values = {
        "title": title,
        "context": [*context, *model_lines(summary), *_criteria(summary)],
        "banner": summary["label_banner"],
        "no_substitute": NO_SUBSTITUTE,
        "warnings": [f"{what} ({count} of {len(records)})" for what, count in summary["warnings"].items()],
        "facts": _facts(summary),
        "tables": refinement_tables({name: summary}),
        "figures": [
            inline(drawn, loop_words(key, summary), CAPTIONS[key]) for key, drawn in loop_figures(summary).items()
        ],
        "principles": PRINCIPLES,
        "categories": CATEGORIES,
        "statuses": _FIRST,
        "thresholds": _thresholds(records),
        "total": len(records),
        "items": [view_of(record) for record in shown],
    }
    return render_page("refinement.html.j2", "refinement.js", values)


def write_refinement(path: Path, records: Sequence[Record], summary: Mapping[str, Any], **options: Any) -> Path:
    """Writes `render_refinement` to a file and returns its path; the file appears complete or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    return write_page(path, render_refinement(records, summary, **options))


def _urgency(record: Record) -> int:
    return _FIRST.index(status_of(record))


def _thresholds(records: Sequence[Record]) -> str:
    """Returns the acceptable scores of a run in words; "" where its records do not say."""
    found = {(own["ama"], own["sra"]) for record in records if (own := record.get("thresholds"))}
    return "; ".join(f"AMA {ama:g}, SRA {sra:g}" for ama, sra in sorted(found))


def _criteria(summary: Mapping[str, Any]) -> list[str]:
    return [f"Criteria: {', '.join(summary['criteria'])}"] if summary["criteria"] else []


def _facts(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    own, cost = summary["overall"], summary["usage"]["total"]["cost"]
    rate, down = own["convergence"], own["downgrade"]
    facts = [
        {"value": f"{summary['n']:,}", "what": "answers in the loop"},
        {"value": f"{rate['count']}/{rate['n']} ({percent(rate['value'])})", "what": "converged within the loop"},
        {"value": ranged(own["mean_iterations"], digits), "what": "mean iterations among converged (95% interval)"},
        {"value": percent(own["reduction"]["value"]), "what": "fewer violations, last against first version"},
        {
            "value": f"{down['count']}/{down['n']} ({percent(down['value'])})",
            "what": "downgraded, of those that began at level 3 or above",
        },
        {
            "value": f"{summary['unscored']} of {summary['n']}",
            "what": "unscored: no text, or an evaluator could not be read",
        },
    ]
    if summary["passed_by_gate"]:
        facts.append({"value": f"{summary['passed_by_gate']:,}", "what": "answers that the gate let pass"})
    refused = summary["end_states"]["refusal"]
    if refused["n"]:
        facts.append({"value": f"{refused['count']} of {refused['n']}", "what": "returned texts that only refuse"})
    return [*facts, {"value": "unknown" if cost is None else f"{cost:,.4f}", "what": "cost of all LM calls"}]
