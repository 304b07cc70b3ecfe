"""Pictures of a run."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.probability_figures import reliability_figure, reliability_words, roc_figure, roc_words
from dspy_mama.reporting.stability_figures import stability_figure, stability_words
from dspy_mama.reporting.style import SERIES, calm, new_figure
from dspy_mama.reporting.tables import phase_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELLS: Final = ((("fn", "missed"), ("tp", "found")), (("tn", "cleared"), ("fp", "false alarm")))


def _scored_phases(summary: Mapping[str, Any]) -> list[str]:
    return [phase for phase, score in summary["phases"].items() if score["average_domains"]]


def confusion_figure(summary: Mapping[str, Any]) -> Figure | None:
    """Draws one confusion matrix per phase and domain, or None where nothing is scored.

    Shades are shares of the row (of all risky, or all safe, pairs), so that a rare class shows too.
    """
    phases = _scored_phases(summary)
    if not phases:
        return None
    figure = new_figure(8.4, 0.5 + 2.15 * len(phases))
    grid = figure.subplots(len(phases), len(DOMAINS), squeeze=False)
    for row, phase in enumerate(phases):
        for column, domain in enumerate(DOMAINS):
            axes = grid[row][column]
            _matrix(axes, summary["phases"][phase]["domains"][domain])
            axes.set_title(f"{phase_title(phase)}: {domain}", fontsize=9.5)
            if column == 0:
                axes.set_ylabel("gold", fontsize=9)
            if row == len(phases) - 1:
                axes.set_xlabel("said", fontsize=9)
    return figure


def _matrix(axes: Axes, own: Mapping[str, Any]) -> None:
    axes.set_xticks([0, 1], ["safe", "risky"], fontsize=8.5)
    axes.set_yticks([0, 1], ["risky", "safe"], fontsize=8.5, rotation=90, va="center")
    axes.tick_params(length=0)
    if not own["n"]:
        axes.set(xlim=(-0.5, 1.5), ylim=(1.5, -0.5))
        axes.text(0.5, 0.5, "no gold\n(n = 0)", ha="center", va="center", fontsize=9)
        return
    counts = [[own[name] for name, _ in row] for row in _CELLS]
    shares = [[count / (sum(row) or 1) for count in row] for row in counts]
    # Up to .75 grey at most: black text stays legible on every cell.
    axes.imshow(shares, cmap="Greys", vmin=0, vmax=2.2, aspect="auto")
    for y, row in enumerate(_CELLS):
        for x, (name, word) in enumerate(row):
            axes.text(x, y, f"{counts[y][x]}", ha="center", va="bottom", fontsize=12, fontweight="bold")
            axes.text(x, y + 0.06, f"{word} ({name.upper()})", ha="center", va="top", fontsize=7.5)
    for position in (-0.5, 0.5, 1.5):
        axes.axhline(position, color="black", lw=0.6)
        axes.axvline(position, color="black", lw=0.6)


def gain_figure(summary: Mapping[str, Any]) -> Figure | None:
    """Draws macro-F1 from phase to phase with its intervals, or None where nothing is scored."""
    phases = _scored_phases(summary)
    if not phases:
        return None
    figure = new_figure(7.2, 4.0)
    axes = figure.subplots()
    shown = [*(d for d in DOMAINS if any(summary["phases"][p]["domains"][d]["n"] for p in phases)), "average"]
    for position, name in enumerate(shown):
        colour, marker, line = SERIES[name]
        # Side by side, so that the bars of one phase do not hide each other.
        offset = (position - (len(shown) - 1) / 2) * 0.09
        points = [_macro_f1(summary["phases"][phase], name) for phase in phases]
        at = [index + offset for index, (value, _) in enumerate(points) if value is not None]
        values = [value for value, _ in points if value is not None]
        spread = [
            [max(v - (ci or (v, v))[0], 0) for v, ci in points if v is not None],
            [max((ci or (v, v))[1] - v, 0) for v, ci in points if v is not None],
        ]
        style: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "ls": line,
            "lw": 1.4,
            "ms": 6,
            "capsize": 3,
            "elinewidth": 1,
        }
        axes.errorbar(at, values, yerr=spread, label=name, **style)
    axes.set_xticks(range(len(phases)), [phase_title(phase) for phase in phases])
    axes.set(xlim=(-0.5, len(phases) - 0.5), ylim=(0, 1.02), ylabel="macro-F1 (95% interval)")
    calm(axes, "y")
    axes.legend(frameon=False, ncols=len(shown), loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    return figure


def _macro_f1(score: Mapping[str, Any], name: str) -> tuple[float | None, Any]:
    if name == "average":
        return score["average_macro_f1"], score["average_macro_f1_ci95"]
    own = score["domains"][name]
    return own["macro_f1"], own["ci95"]["macro_f1"]


def run_figures(summary: Mapping[str, Any]) -> dict[str, Figure]:
    """Returns the pictures of a run by name: what is not scored, has no probability or no repeat has no picture."""
    drawn = {
        "confusion": confusion_figure(summary),
        "phase_gain": gain_figure(summary),
        "reliability": reliability_figure(summary),
        "roc": roc_figure(summary),
        "stability": stability_figure(summary),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def to_png(figure: Figure) -> bytes:
    """Returns the picture as PNG, the same bytes for the same picture."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def describe(name: str, summary: Mapping[str, Any]) -> str:
    """Returns a picture in words, for those who do not see it."""
    if name in ("reliability", "roc"):
        return reliability_words(summary) if name == "reliability" else roc_words(summary)
    if name == "stability":
        return stability_words(summary)
    phases = _scored_phases(summary)
    if name == "phase_gain":
        series = [
            f"{phase_title(p)} {summary['phases'][p]['average_macro_f1']:.3f}"
            for p in phases
            if summary["phases"][p]["average_macro_f1"] is not None
        ]
        return f"Macro-F1 by phase with 95% intervals. Average: {', '.join(series)}."
    cells = [
        f"{phase_title(phase)} {domain}: TP {own['tp']}, FP {own['fp']}, FN {own['fn']}, TN {own['tn']}"
        for phase in phases
        for domain, own in summary["phases"][phase]["domains"].items()
        if own["n"]
    ]
    return f"Confusion matrices. {'; '.join(cells)}."
