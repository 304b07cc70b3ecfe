"""Pictures of several systems beside each other: forest plot, cost against quality, heat map of agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.style import calm, look, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES: Final = ("average macro-F1", *(f"{domain} macro-F1" for domain in DOMAINS), "joint accuracy")

Value = tuple[float | None, Sequence[float] | None]


def measured(score: Mapping[str, Any], measure: str) -> Value:
    """Returns one of `MEASURES` of a score, and its interval."""
    if measure == "joint accuracy":
        return score["joint_accuracy"]["value"], score["joint_accuracy"]["ci95"]
    if measure == "average macro-F1":
        return score["average_macro_f1"], score["average_macro_f1_ci95"]
    own = score["domains"][measure.split()[0]]
    return own["macro_f1"], own["ci95"]["macro_f1"]


def forest_figure(systems: Mapping[str, Mapping[str, Any]]) -> Figure | None:
    """Draws each measure of each system with its interval; None where nothing is scored.

    Args:
        systems: Score by name, as `score_systems` gives it.
    """
    shown = [m for m in MEASURES if any(measured(score, m)[0] is not None for score in systems.values())]
    if not shown:
        return None
    figure = new_figure(7.6, 0.9 + len(shown) * (0.45 + 0.26 * len(systems)))
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axes, measure in zip(panels, shown, strict=True):
        for row, (_, score) in enumerate(systems.items()):
            value, limits = measured(score, measure)
            if value is None:
                axes.text(0.5, row, "not scored", ha="center", va="center", fontsize=8, color="0.3")
                continue
            low, high = limits or (value, value)
            colour, marker, _ = look(row)
            spread = [[max(value - low, 0)], [max(high - value, 0)]]
            axes.errorbar([value], [row], xerr=spread, color=colour, marker=marker, ms=6, capsize=3, lw=1.4)
            axes.text(1.02, row, f"{value:.3f}", va="center", fontsize=8, transform=axes.get_yaxis_transform())
        axes.set_yticks(range(len(systems)), list(systems), fontsize=8.5)
        axes.set(ylim=(len(systems) - 0.5, -0.5), xlim=(0, 1))
        axes.set_title(measure, fontsize=9.5, loc="left")
        calm(axes, "x")
    panels[-1].set_xlabel("value with 95% bootstrap interval", fontsize=9)
    return figure


def forest_words(systems: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the forest plot in words."""
    parts = []
    for name, score in systems.items():
        value, limits = measured(score, "average macro-F1")
        if value is not None:
            parts.append(f"{name} {value:.3f}" + (f" ({limits[0]:.3f} to {limits[1]:.3f})" if limits else ""))
    return f"Forest plot of the systems. Average macro-F1 with 95% interval: {'; '.join(parts)}."


def cost_figure(
    systems: Mapping[str, Mapping[str, Any]], costs: Mapping[str, float | None], unit: str
) -> Figure | None:
    """Draws average macro-F1 against what it costs; None where fewer than two systems have both.

    Args:
        systems: Score by name.
        costs: What one pair costs, by name; None or absent = unknown, which is not drawn as 0.
        unit: What is counted, such as `money per pair`.
    """
    points = {
        name: (cost, measured(score, "average macro-F1"))
        for name, score in systems.items()
        if (cost := costs.get(name)) is not None and measured(score, "average macro-F1")[0] is not None
    }
    if len(points) < 2:
        return None
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    for row, name in enumerate(systems):
        if name not in points:
            continue
        cost, (value, limits) = points[name]
        if value is None:
            continue
        low, high = limits or (value, value)
        colour, marker, _ = look(row)
        spread = [[max(value - low, 0)], [max(high - value, 0)]]
        axes.errorbar([cost], [value], yerr=spread, color=colour, marker=marker, ms=8, capsize=3, lw=1.2, label=name)
    axes.set_xlim(left=0)
    axes.margins(x=0.12)
    axes.set_xlabel(unit, fontsize=9)
    axes.set_ylabel("average macro-F1 (95% interval)", fontsize=9)
    calm(axes)
    axes.legend(frameon=False, fontsize=8.5, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(len(points), 4))
    return figure


def cost_words(systems: Mapping[str, Mapping[str, Any]], costs: Mapping[str, float | None], unit: str) -> str:
    """Returns cost against quality in words."""
    parts = [
        f"{name} {measured(score, 'average macro-F1')[0]:.3f} at {costs[name]:,.4g}"
        for name, score in systems.items()
        if costs.get(name) is not None and measured(score, "average macro-F1")[0] is not None
    ]
    return f"Average macro-F1 against {unit}: {'; '.join(parts)}."


def kappa_heatmap(
    rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]], title: str = "kappa"
) -> Figure:
    """Draws agreement as a table of shades, each cell with its number.

    Args:
        rows: Names of the rows, such as settings or phases.
        columns: Names of the columns, such as domains.
        values: Kappa per row and column in [-1, 1]; None = undefined.
        title: What is shown.
    """
    figure = new_figure(2.4 + 1.05 * len(columns), 1.1 + 0.42 * len(rows))
    axes = figure.subplots()
    shades = [[min(max(v, 0.0), 1.0) if v is not None else 0.0 for v in row] for row in values]
    # Up to .75 grey at most: black text stays legible on every cell.
    axes.imshow(shades, cmap="Greys", vmin=0, vmax=1.9, aspect="auto")
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            text = "undefined" if value is None else f"{value:.2f}"
            axes.text(x, y, text, ha="center", va="center", fontsize=9 if value is not None else 7.5)
    axes.set_xticks(range(len(columns)), list(columns), fontsize=9)
    axes.set_yticks(range(len(rows)), list(rows), fontsize=9)
    axes.tick_params(length=0)
    for position in range(len(columns) + 1):
        axes.axvline(position - 0.5, color="black", lw=0.6)
    for position in range(len(rows) + 1):
        axes.axhline(position - 0.5, color="black", lw=0.6)
    axes.set_title(title, fontsize=9.5, loc="left")
    return figure
