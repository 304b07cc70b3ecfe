"""One look for every picture: readable in grey and by colour-blind people. No pyplot, so safe in threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI: Final = 130

Look = tuple[str, str, str]
"""Colour, marker and line style; any one of them tells two series apart."""

# Okabe and Ito's palette.
SERIES: Final[dict[str, Look]] = {
    "medical": ("#0072B2", "o", "-"),
    "ethical": ("#D55E00", "s", "--"),
    "legal": ("#009E73", "^", "-."),
    "average": ("#000000", "D", ":"),
}
_LOOKS: Final[tuple[Look, ...]] = (
    ("#000000", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#0072B2", "^", "-."),
    ("#009E73", "D", ":"),
    ("#CC79A7", "v", "-"),
    ("#E69F00", "P", "--"),
    ("#56B4E9", "X", "-."),
)


def look(position: int) -> Look:
    """Returns the look of the n-th system of a comparison; looks come round again after seven."""
    return _LOOKS[position % len(_LOOKS)]


def new_figure(width: float, height: float) -> Figure:
    """Returns an empty figure of so many inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def calm(axes: Axes, grid: str = "both") -> None:
    """Takes the frame's upper right off and puts a light grid behind the data."""
    axes.grid(axis=grid, color="0.85", lw=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
