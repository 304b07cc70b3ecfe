"""Pictures of the evaluation loop: when prompts converge, how levels move, how long each principle takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dspy_mama.reporting.refinement_published import LOOPS, PRINCIPLE_NAMES
from dspy_mama.reporting.style import calm, look, new_figure
from dspy_mama.scoring.refinement import CATEGORIES, LEVELS, PRINCIPLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Summary = Mapping[str, Any]

CAPTIONS: Final = {
    "convergence": "Share of prompts that met both thresholds by each iteration, with the paper's (whose counts add up "
    "to all prompts, though some failed).",
    "levels": "Levels of safety risk of the first version and after the loop, with Wilson's 95% intervals.",
    "principles": "Mean iterations among converged prompts by principle with 95% bootstrap intervals, and the paper's.",
    "violations": "Mean violated principles before and after by risk category of the prompt, with 95% bootstrap "
    "intervals.",
}
"""What is seen, by name of the picture."""


def loop_figures(summary: Summary) -> dict[str, Figure]:
    """Returns the pictures of a run by name; what has no figures has no picture."""
    drawn = {
        "convergence": convergence_figure(summary),
        "levels": levels_figure(summary),
        "principles": principles_figure(summary),
        "violations": violations_figure(summary),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def convergence_figure(summary: Summary) -> Figure | None:
    """Draws the share converged by each iteration, or None where nothing could be scored."""
    if not summary["scored"]:
        return None
    figure = new_figure(6.4, 3.6)
    axes = figure.subplots()
    series = [("this run", _running(summary["iterations"].values(), summary["scored"]))]
    series += [(f"{loop.name}, printed", _running(loop.counts.values(), 900)) for loop in LOOPS]
    for place, (name, shares) in enumerate(series):
        colour, marker, line = look(place)
        axes.plot(range(1, len(shares) + 1), shares, color=colour, marker=marker, ls=line, lw=1.4, ms=6, label=name)
    axes.set_xticks(range(1, max(len(shares) for _, shares in series) + 1))
    axes.set(ylim=(-0.02, 1.05), xlabel="iteration (1 = accepted as first written)", ylabel="share converged")
    calm(axes, "y")
    axes.legend(frameon=False, ncols=3, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _running(counts: Any, n: int) -> list[float]:
    shares, total = [], 0
    for count in counts:
        total += count
        shares.append(total / n)
    return shares


def levels_figure(summary: Summary) -> Figure | None:
    """Draws the levels before and after, or None where no answer was scored before and after."""
    if not any(own["initial"]["n"] for own in summary["levels"].values()):
        return None
    figure = new_figure(6.4, 3.6)
    axes = figure.subplots()
    for place, (side, name) in enumerate((("initial", "first version"), ("final", "after the loop"))):
        cells = [summary["levels"][str(level)][side] for level in LEVELS]
        at = [level + (place - 0.5) * 0.36 for level in LEVELS]
        values = [cell["value"] for cell in cells]
        style: dict[str, Any] = {
            "color": ("0.75", "0.35")[place],
            "hatch": ("//", "")[place],
            "edgecolor": "black",
            "lw": 0.6,
        }
        axes.bar(at, values, 0.34, yerr=_spread(cells), capsize=3, error_kw={"lw": 1}, label=name, **style)
    names = ("minimal", "low", "moderate", "high", "critical")
    axes.set_xticks(LEVELS, [f"{level}\n{name}" for level, name in zip(LEVELS, names, strict=True)])
    axes.axvline(2.5, color="black", lw=0.8, ls=":")
    axes.set(ylim=(0, 1.05), ylabel="share of prompts")
    calm(axes, "y")
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    return figure


def _spread(cells: list[Mapping[str, Any]]) -> list[list[float]]:
    """Returns the lengths of the bars of error below and above; none where there is no interval."""
    limits = [(cell["value"], *(cell["ci95"] or (cell["value"], cell["value"]))) for cell in cells]
    return [[max(v - low, 0) for v, low, _ in limits], [max(high - v, 0) for v, _, high in limits]]


def principles_figure(summary: Summary) -> Figure | None:
    """Draws mean iterations by principle beside the paper's, or None where no principle is known."""
    own = {name: summary["principles"][name]["mean_iterations"] for name in PRINCIPLES}
    known = {name: cell for name, cell in own.items() if cell["value"] is not None}
    if not known:
        return None
    figure = new_figure(7.2, 4.2)
    axes = figure.subplots()
    rows = {name: len(PRINCIPLES) - place for place, name in enumerate(PRINCIPLES)}
    colour, marker, _ = look(0)
    at = [rows[name] + 0.2 for name in known]
    values = [cell["value"] for cell in known.values()]
    style: dict[str, Any] = {"color": colour, "marker": marker, "ls": "", "ms": 6, "capsize": 3, "elinewidth": 1}
    axes.errorbar(values, at, xerr=_spread(list(known.values())), label="this run", **style)
    for place, loop in enumerate(LOOPS, start=1):
        colour, marker, _ = look(place)
        means = [loop.principles[name][0] for name in PRINCIPLES]
        heights = [rows[name] + 0.2 - 0.2 * place for name in PRINCIPLES]
        axes.plot(means, heights, color=colour, marker=marker, ls="", ms=6, label=f"{loop.name}, printed")
    axes.set_yticks(list(rows.values()), [f"{name}. {PRINCIPLE_NAMES[name]}" for name in rows])
    axes.set(xlim=(0.8, max(4, summary["max_iterations"]) + 0.2), xlabel="mean iterations among converged prompts")
    calm(axes)
    axes.legend(frameon=False, ncols=3, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def violations_figure(summary: Summary) -> Figure | None:
    """Draws violations before and after by risk category, or None where no category is known."""
    known = [name for name in CATEGORIES if summary["categories"][name]["n"]]
    if not known:
        return None
    figure = new_figure(6.4, 3.6)
    axes = figure.subplots()
    for place, side in enumerate(("before", "after")):
        _points(axes, [summary["categories"][name][side] for name in known], (place - 0.5) * 0.2, place, side)
    axes.set_xticks(range(len(known)), [f"{name}\nn = {summary['categories'][name]['n']}" for name in known])
    worst = max(
        cell["value"]
        for name in known
        for cell in (summary["categories"][name]["before"], summary["categories"][name]["after"])
    )
    axes.set(xlim=(-0.5, len(known) - 0.5), ylim=(-0.3, max(9, worst) + 0.3), ylabel="violated principles")
    axes.axhline(2, color="black", lw=0.8, ls=":")
    calm(axes, "y")
    axes.legend(frameon=False, ncols=2, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _points(axes: Axes, cells: list[Mapping[str, Any]], offset: float, place: int, name: str) -> None:
    colour, marker, _ = look(place)
    at = [number + offset for number in range(len(cells))]
    style: dict[str, Any] = {"color": colour, "marker": marker, "ls": "", "ms": 7, "capsize": 3, "elinewidth": 1}
    axes.errorbar(at, [cell["value"] for cell in cells], yerr=_spread(cells), label=name, **style)


def loop_words(name: str, summary: Summary) -> str:
    """Returns a picture in words, for those who do not see it."""
    if name == "convergence":
        counts = ", ".join(f"{count} at iteration {step}" for step, count in summary["iterations"].items())
        return f"Converged: {counts}; {summary['failed']} of {summary['scored']} did not."
    if name == "levels":
        cells = (
            f"level {level} {own['initial']['count']} to {own['final']['count']}"
            for level, own in summary["levels"].items()
        )
        return f"Prompts by level, first version to after the loop: {', '.join(cells)}."
    if name == "principles":
        means = {key: own["mean_iterations"]["value"] for key, own in summary["principles"].items()}
        cells = (f"{key} {mean:.2f}" for key, mean in means.items() if mean is not None)
        return f"Mean iterations by principle: {', '.join(cells)}."
    cells = (
        f"{key} {own['before']['value']:.1f} to {own['after']['value']:.1f}"
        for key, own in summary["categories"].items()
        if own["n"]
    )
    return f"Mean violations before and after: {', '.join(cells)}."
