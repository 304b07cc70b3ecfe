"""Tables I to V of the paper on evaluation loops: our runs beside the printed figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dspy_mama.reporting.refinement_published import (
    CONTRADICTIONS,
    INTERPRETATIONS,
    LOOPS,
    PRINCIPLE_NAMES,
    VELOCITY,
    PrintedLoop,
)
from dspy_mama.reporting.tables import NONE, Table
from dspy_mama.scoring.refinement import CATEGORIES, LEVELS, PRINCIPLES, mean_velocity

Summaries = Mapping[str, Mapping[str, Any]]
"""Summaries of runs (`loop_summary`) by the name of their column."""

Cells = tuple[str, ...]


def loop_tables(summaries: Summaries, *, printed: bool = True) -> list[Table]:
    """Returns Tables I to V.

    Args:
        summaries: One column a run.
        printed: Put the paper's columns beside them.
    """
    beside = LOOPS if printed else ()
    tables = [make(summaries, beside) for make in (overall_table, iterations_table, principles_table)]
    return [*tables, violations_table(summaries, beside), levels_table(summaries, beside)]


def percent(value: float | None, digits: int = 1) -> str:
    """Returns `94.2%`, or a dash where it is undefined."""
    return NONE if value is None else f"{value:.{digits}%}"


def number(value: float | None, digits: int = 2) -> str:
    """Returns a number with fixed digits, or a dash where it is undefined."""
    return NONE if value is None else f"{value:.{digits}f}"


def ranged(own: Mapping[str, Any], show: Callable[[float | None], str]) -> str:
    """Returns `94.2% (92.5% to 95.6%)`."""
    text, limits = show(own["value"]), own["ci95"]
    return text if limits is None else f"{text} ({show(limits[0])} to {show(limits[1])})"


def _counted(own: Mapping[str, Any]) -> str:
    return f"{own['count']}/{own['n']} = {ranged(own, percent)}" if own["n"] else f"0/0 = {NONE}"


def _header(first: str, summaries: Summaries, beside: Sequence[PrintedLoop], *more: str) -> Cells:
    return (first, *(f"{name} (95% CI)" for name in summaries), *(f"{p.name} (printed)" for p in beside), *more)


def overall_table(summaries: Summaries, beside: Sequence[PrintedLoop] = LOOPS) -> Table:
    """Returns Table I, with the denominators that the paper leaves out."""
    rows: list[Cells] = []

    def row(name: str, ours: Callable[[Any], str], theirs: Callable[[PrintedLoop], str] | None = None) -> None:
        printed = [theirs(loop) if theirs else NONE for loop in beside]
        rows.append((name, *(ours(s) for s in summaries.values()), *printed))

    row("Convergence rate", lambda s: _counted(s["overall"]["convergence"]), lambda p: percent(p.convergence))
    row("Mean iterations", lambda s: ranged(s["overall"]["mean_iterations"], number), lambda p: number(p.mean))
    row("Std dev", lambda s: ranged(s["overall"]["sd_iterations"], number), lambda p: number(p.sd))
    row("Violation reduction", lambda s: ranged(s["overall"]["reduction"], percent), lambda p: percent(p.reduction))
    row("Risk downgrade", lambda s: _counted(s["overall"]["downgrade"]), lambda p: percent(p.downgrade))
    row("Reduction, mean of items", _own_reduction)
    if any(s["final_check"] for s in summaries.values()):
        row("Reduction, returned text", lambda s: _checked(s, lambda c: ranged(c["reduction"], percent)))
        row("Downgrade, returned text", lambda s: _checked(s, lambda c: _counted(c["downgrade"])))
    row("Unscored", lambda s: f"{s['unscored']}/{s['n']}")
    notes = (
        "Convergence and downgrade with Wilson's intervals, the others with bootstrap intervals over prompts. "
        "Reduction is one minus the ratio of mean violations. A downgrade is from level 3 or above to 2 or below, "
        "over prompts that begin at 3 or above. Before: the first version; after: the last assessment within the loop.",
    )
    return Table("Table I: overall performance", _header("Metric", summaries, beside), tuple(rows), notes)


def _own_reduction(summary: Mapping[str, Any]) -> str:
    own = summary["overall"]["reduction"]
    return f"{percent(own['per_item_mean'])} ({own['per_item_undefined']} undefined)"


def _checked(summary: Mapping[str, Any], show: Callable[[Any], str]) -> str:
    return show(summary["final_check"]) if summary["final_check"] else NONE


def iterations_table(summaries: Summaries, beside: Sequence[PrintedLoop] = LOOPS) -> Table:
    """Returns Table II: at which iteration prompts converged, and how many did not."""
    most = max([5, *(int(number) for s in summaries.values() for number in s["iterations"])])
    rows: list[Cells] = []
    for step in range(1, most + 1):
        ours = (_part(s["iterations"].get(str(step), 0), s["scored"]) for s in summaries.values())
        theirs = (_part(loop.counts.get(step, 0), 900) for loop in beside)
        rows.append((str(step), *ours, *theirs, INTERPRETATIONS.get(step, NONE)))
    ours = (_part(s["overall"]["convergence"]["count"], s["scored"]) for s in summaries.values())
    rows.append(("Converged", *ours, *(_part(loop.converged, 900) for loop in beside), "Met thresholds"))
    failed = (_part(s["failed"], s["scored"]) for s in summaries.values())
    rows.append(("Failed", *failed, *(_part(loop.failed, 900) for loop in beside), "Did not meet thresholds"))
    head = ("Iterations", *summaries, *(f"{loop.name} (printed)" for loop in beside), "Interpretation")
    return Table("Table II: iteration requirements", head, tuple(rows), _doubts(beside, "counts", "mean_iterations"))


def _part(count: int, n: int) -> str:
    return f"{count} ({percent(count / n if n else None, 0)})"


def principles_table(summaries: Summaries, beside: Sequence[PrintedLoop] = LOOPS) -> Table:
    """Returns Table III: iterations by principle, mean and standard deviation among converged prompts."""
    rows: list[Cells] = []
    for name in PRINCIPLES:
        ours = (_iterations(s["principles"][name]) for s in summaries.values())
        theirs = (f"{loop.principles[name][0]:.1f}±{loop.principles[name][1]:.1f}" for loop in beside)
        rows.append((f"{name}. {PRINCIPLE_NAMES[name]}", *ours, *theirs))
    ours = (_iterations(s["overall"], 2) for s in summaries.values())
    rows.append(("Overall", *ours, *(f"{loop.mean:.2f}±{loop.sd:.2f}" for loop in beside)))
    notes = [
        f"{name}: {s['without_principle']} prompt(s) without a principle count under Overall alone."
        for name, s in summaries.items()
        if s["without_principle"]
    ]
    head = _header("Principle", summaries, beside)
    return Table("Table III: iterations by AMA principle", head, tuple(rows), (*notes, *_doubts(beside, "mean_of")))


def _iterations(own: Mapping[str, Any], digits: int = 1) -> str:
    mean, spread = own["mean_iterations"], own["sd_iterations"]["value"]
    if mean["value"] is None:
        return NONE
    text = number(mean["value"], digits) + ("" if spread is None else f"±{number(spread, digits)}")
    limits = mean["ci95"]
    text += f" ({number(limits[0], digits)} to {number(limits[1], digits)})" if limits else ""
    return text + (f", n {own['converged']}/{own['n']}" if "converged" in own else "")


def violations_table(summaries: Summaries, beside: Sequence[PrintedLoop] = LOOPS) -> Table:
    """Returns Table IV: violations before and after by risk category of the prompt, and velocity."""
    rows: list[Cells] = []
    for name in CATEGORIES:
        own = {run: s["categories"][name] for run, s in summaries.items()}
        ours = (_before_after(cell) for cell in own.values())
        speeds = (ranged(cell["velocity"], number) for cell in own.values())
        theirs = (f"{loop.violations[name][0]:.1f} to {loop.violations[name][1]:.1f}" for loop in beside)
        both = (number(mean_velocity([c["velocity"]["value"] for c in own.values()])),) if len(own) > 1 else ()
        rows.append(
            (name.capitalize(), *ours, *speeds, *both, *theirs, *((f"{VELOCITY[name]:.2f}",) if beside else ()))
        )
    head = (
        "Category",
        *(f"{run}: before to after" for run in summaries),
        *(f"{run}: velocity (95% CI)" for run in summaries),
        *(("Velocity, mean of runs",) if len(summaries) > 1 else ()),
        *(f"{loop.name} (printed)" for loop in beside),
        *(("Velocity (printed)",) if beside else ()),
    )
    notes = [
        f"{run}: {s['without_category']} prompt(s) without a category are left out."
        for run, s in summaries.items()
        if s["without_category"]
    ]
    notes.append("Velocity: violations removed per mean iteration of the run. The printed one is a mean of two runs.")
    table = "Table IV: violations by risk category of the prompt"
    return Table(table, head, tuple(rows), (*notes, *_doubts(beside, "velocity", "reduction")))


def _before_after(cell: Mapping[str, Any]) -> str:
    def show(value: float | None) -> str:
        return number(value, 1)

    if not cell["n"]:
        return NONE
    limits = "; ".join(f"{show(c[0])} to {show(c[1])}" for c in (cell["before"]["ci95"], cell["after"]["ci95"]) if c)
    text = f"{show(cell['before']['value'])} to {show(cell['after']['value'])}"
    return text + (f" ({limits})" if limits else "") + f", n {cell['n']}"


def levels_table(summaries: Summaries, beside: Sequence[PrintedLoop] = LOOPS) -> Table:
    """Returns Table V: levels of safety risk before and after."""
    names = dict(zip(LEVELS, ("Minimal", "Low", "Moderate", "High", "Critical"), strict=True))
    rows: list[Cells] = []
    for level in LEVELS:
        own = [s["levels"][str(level)][side] for s in summaries.values() for side in ("initial", "final")]
        ours = (ranged(cell, lambda value: percent(value, 0)) for cell in own)
        theirs = (" to ".join(percent(value, 0) for value in loop.levels[level]) for loop in beside)
        rows.append((f"{level} ({names[level]})", *ours, *theirs))
    head = ("Level", *(f"{run}: {side} (95% CI)" for run in summaries for side in ("initial", "final")))
    head += tuple(f"{loop.name}: initial to final (printed)" for loop in beside)
    notes = ("With Wilson's intervals. A level between two, from averaged evaluators, counts as the higher one.",)
    return Table("Table V: SRA-5 risk distribution", head, tuple(rows), (*notes, *_doubts(beside, "downgrade")))


def _doubts(beside: Sequence[PrintedLoop], *keys: str) -> Cells:
    """Returns what is to be known of the printed figures; nothing where they are not shown."""
    if not beside:
        return ()
    found: list[str] = []
    for own in CONTRADICTIONS:
        if any(own.key.startswith(key) for key in keys):
            shown = [" / ".join(f"{value:g}" for value in values) for values in (own.printed, own.derived)]
            found.append(f"Printed figures disagree. {own.what}: {shown[0]} against {shown[1]}.")
    return tuple(found)
