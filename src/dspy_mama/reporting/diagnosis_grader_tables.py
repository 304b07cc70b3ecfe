"""The tables that say how far a run's grader can be trusted: beside itself, the matcher, and people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.reporting.diagnosis_titles import title_of
from dspy_mama.reporting.tables import NONE, Table, figure

Summary = Mapping[str, Any]


def grader_table(summary: Summary) -> Table:
    """Returns how far the grader agrees with itself and with the matcher."""
    rows = []
    for unit, found in summary["grader"]["units"].items():
        orders, matcher = found["orders"], found["matcher"]
        if not found["n"]:
            continue
        swap = [NONE] * 3
        if orders:
            swap = [f"{orders['agreement']:.1%} of {orders['n']}", f"{orders['shift']:+.2f}", figure(orders["kappa"])]
        names = [NONE, NONE]
        if matcher:
            names = [
                f"{matcher['agreement']:.1%} of {matcher['n']}",
                f"{matcher['only_grader']}:{matcher['only_matcher']}",
            ]
        rows.append((title_of(unit), str(found["n"]), *swap, *names))
    header = (
        "Judged",
        "Graded",
        "Same in both orders",
        "Shift",
        "Kappa",
        "As the matcher",
        "Right only by grader:matcher",
    )
    notes = [
        "Shift: mean level with the answer read first, less that with the truth first. The matcher compares spellings "
        "and a dictionary, and knows no other synonyms.",
        f"Possible diagnoses graded below the most likely one among them: {summary['grader']['contradictions']}.",
    ]
    if summary["grader"]["self_graded"]:
        notes.append(
            f"{summary['grader']['self_graded']} of {summary['grader']['of']} records were graded by the model that "
            "diagnosed: models favour their own words; name another LM as lm.roles.grader."
        )
    return Table("The grader", header, tuple(rows), tuple(notes))


def people_table(people: Mapping[str, Any]) -> Table:
    """Returns the grader beside people's ratings, from what `people_beside_grader` says."""
    rows = tuple(
        (
            title_of(unit), str(found["n"]), f"{found['equal']:.1%}", f"{found['right']:.1%}",
            figure(found["kappa"]), figure(found["alpha"]),
        )
        for unit, found in people["units"].items()
    )  # fmt: skip
    header = ("Judged", "n", "Same level", "Same right or wrong", "Kappa", "Alpha among raters")
    raters = f"Raters: {', '.join(people['raters'])}."
    unknown = f" {people['unknown']} rating(s) are of records that this run does not hold." if people["unknown"] else ""
    return Table("The grader beside people", header, rows, (raters + unknown,))
