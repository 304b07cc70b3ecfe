"""What the probabilities of a run are worth: reliability diagram and ROC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.style import SERIES, calm, new_figure
from dspy_mama.reporting.tables import figure as number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _curves(summary: Mapping[str, Any], kind: str) -> dict[str, Any]:
    curves = summary.get("curves") or {}
    return {domain: curves[domain][kind] for domain in DOMAINS if (curves.get(domain) or {}).get(kind)}


def _diagonal(axes: Axes, label: str) -> None:
    axes.plot([0, 1], [0, 1], color="0.55", lw=1, ls=(0, (1, 2)), label=label)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    calm(axes)


def reliability_figure(summary: Mapping[str, Any]) -> Figure | None:
    """Draws what was said against what was so, one panel a domain; None without probabilities and gold."""
    curves = _curves(summary, "reliability")
    if not curves:
        return None
    figure = new_figure(2.9 * len(curves) + 0.6, 3.5)
    for axes, (domain, points) in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves.items(), strict=True):
        colour, marker, line = SERIES[domain]
        said, risky = [point["said"] for point in points], [point["risky"] for point in points]
        spread = [[p["risky"] - p["low"] for p in points], [p["high"] - p["risky"] for p in points]]
        spread = [[max(value, 0) for value in side] for side in spread]
        _diagonal(axes, "as said")
        axes.errorbar(said, risky, yerr=spread, color=colour, marker=marker, ls=line, lw=1.2, capsize=3, ms=6)
        for point in points:
            above = point["risky"] < 0.5
            axes.annotate(
                f"{point['n']:,.0f}",
                (point["said"], point["high"] if above else point["low"]),
                xytext=(0, 3 if above else -3),
                textcoords="offset points",
                ha="center",
                va="bottom" if above else "top",
                fontsize=7,
                color="0.3",
            )
        own = summary["final"]["domains"][domain]
        axes.set_title(f"{domain}: ECE {number(own['ece'])}, Brier {number(own['brier'])}", fontsize=9)
        axes.set_xlabel("probability of risk", fontsize=9)
    figure.axes[0].set_ylabel("share risky by gold", fontsize=9)
    return figure


def roc_figure(summary: Mapping[str, Any]) -> Figure | None:
    """Draws one ROC curve a domain; None where no domain has probabilities and both classes."""
    curves = _curves(summary, "roc")
    if not curves:
        return None
    figure = new_figure(5.2, 4.6)
    axes = figure.subplots()
    for domain, points in curves.items():
        colour, marker, line = SERIES[domain]
        own = summary["final"]["domains"][domain]
        x, y = [point[0] for point in points], [point[1] for point in points]
        label = f"{domain}, AUC {number(own['auc'])}"
        every = max(1, len(points) // 8)
        axes.plot(x, y, color=colour, ls=line, lw=1.6, marker=marker, markevery=every, ms=5, label=label)
    _diagonal(axes, "chance")
    axes.set_xlabel("safe answers flagged (false positive rate)", fontsize=9)
    axes.set_ylabel("risky answers found (true positive rate)", fontsize=9)
    axes.legend(frameon=False, loc="lower right", fontsize=8.5)
    return figure


def reliability_words(summary: Mapping[str, Any]) -> str:
    """Returns the reliability diagram in words."""
    parts = [
        f"{domain}: "
        + ", ".join(f"{p['risky']:.2f} risky where {p['said']:.2f} was said (n {p['n']:.0f})" for p in points)
        for domain, points in _curves(summary, "reliability").items()
    ]
    return f"Reliability diagram. {'; '.join(parts)}."


def roc_words(summary: Mapping[str, Any]) -> str:
    """Returns the ROC curves in words."""
    domains = summary["final"]["domains"]
    parts = [f"{domain} AUC {number(domains[domain]['auc'])}" for domain in _curves(summary, "roc")]
    return f"ROC curves of the final probabilities. {', '.join(parts)}."
