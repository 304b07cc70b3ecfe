"""The picture of a setting's stability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.comparison_figures import kappa_heatmap
from dspy_mama.reporting.tables import figure, phase_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def stability_figure(summary: Mapping[str, Any]) -> Figure | None:
    """Draws Fleiss' kappa of the repeats by phase and domain, or None for a run without repeats."""
    stability = summary.get("stability")
    if not stability:
        return None
    phases = stability["phases"]
    values = [[own[domain]["fleiss_kappa"] for domain in DOMAINS] for own in phases.values()]
    title = f"Fleiss' kappa of {stability['repeats']} repeats"
    return kappa_heatmap([phase_title(phase) for phase in phases], DOMAINS, values, title)


def stability_words(summary: Mapping[str, Any]) -> str:
    """Returns the picture in words."""
    cells = [
        f"{phase_title(phase)} {domain} {figure(own[domain]['fleiss_kappa'], 2)}"
        for phase, own in summary["stability"]["phases"].items()
        for domain in DOMAINS
    ]
    return f"Fleiss' kappa of {summary['stability']['repeats']} repeats: {', '.join(cells)}."
