"""The tables of clinicians' ratings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.reporting.tables import NONE, Table, figure
from dspy_mama.systems.audit import SEVERITY_SCALE


def rating_tables(summary: Mapping[str, Any]) -> tuple[Table, ...]:
    """Returns the tables of what `summarise_ratings` found."""
    tables = (_groups(summary), _agreement(summary), _items(summary))
    return tuple(table for table in tables if table.rows)


def _groups(summary: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            *name.replace("_", " ").split("/"),
            str(own["n"]),
            str(own["ratings"]),
            figure(own["mean"], 2),
            figure(own["sd"], 2),
            *(str(own["levels"][str(level)]) for level in SEVERITY_SCALE),
        )
        for name, own in summary["groups"].items()
    )
    levels = tuple(f"{level} {name}" for level, (name, _) in SEVERITY_SCALE.items())
    header = ("Domain", "Error", "n", "Ratings", "Mean", "SD", *levels)
    notes = [
        f"{summary['n']} of {summary['of']} errors rated by {len(summary['raters'])} rater(s). Mean and SD are over "
        "errors, each by the mean of its raters; the levels count ratings. Consequence alone, not its likelihood."
    ]
    suggestion = summary["suggestion"]
    if suggestion:
        notes.append(
            f"The LM's suggestions are no ratings. On {suggestion['n']} errors they lie "
            f"{suggestion['mean_difference']:+.2f} from the clinicians' means; weighted kappa "
            f"{figure(suggestion['weighted_kappa'])}."
        )
    return Table("Severity of errors by clinicians", header, rows, tuple(notes))


def _agreement(summary: Mapping[str, Any]) -> Table:
    found = summary["agreement"] or {"pairs": (), "krippendorff_alpha": None, "n": 0}
    rows = [
        (" and ".join(pair["raters"]), str(pair["n"]), figure(pair["weighted_kappa"]), figure(pair["equal"], 2), NONE)
        for pair in found["pairs"]
    ]
    if rows:
        rows.append(("all raters", str(found["n"]), NONE, NONE, figure(found["krippendorff_alpha"])))
    header = ("Raters", "n", "Weighted kappa", "Same level", "Krippendorff's alpha")
    return Table("Agreement of raters", header, tuple(rows), ("Quadratic weights; alpha is ordinal.",))


def _items(summary: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            item["id"],
            item["domain"],
            item["error"].replace("_", " "),
            figure(item["mean"], 2),
            str(item["n"]),
            NONE if item["suggested"] is None else str(item["suggested"]),
            "; ".join(f"{rater} {level}" for rater, level in item["ratings"].items()),
        )
        for item in sorted(summary["items"], key=lambda item: -item["mean"])
    )
    return Table("Rated errors, worst first", ("Pair", "Domain", "Error", "Mean", "n", "LM", "Ratings"), rows)
