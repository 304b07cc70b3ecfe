"""The tables of a run in a terminal and in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.tables import PHASE_TITLES, Table, run_tables

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

WIDE: Final = 145
"""Columns of a terminal from which the tables are printed in full."""

_UNBOUNDED: Final = 10_000
"""Columns within which a table is measured."""

_TEXT: Final = frozenset(
    {
        "Domain",
        "Measure",
        "Method",
        "Methods",
        "Role",
        "Judged",
        "Setting",
        "Ended by",
        "Values",
        "The paper's finding",
        "Test",
        "Of",
    }
)


def print_tables(summary: Mapping[str, Any], console: Console) -> None:
    """Prints the tables of a run, the label banner first."""
    from rich.text import Text

    if summary.get("label_banner"):
        console.print(Text(summary["label_banner"], style="bold yellow"))
    show_tables(run_tables(summary), console)


def show_tables(tables: Iterable[Table], console: Console) -> None:
    """Prints tables, fitted to the width of the terminal."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    narrow = console.width < WIDE
    for table in tables:
        shown = RichTable(
            title=table.title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False
        )
        shown.padding = (0, 0) if narrow else (0, 1)
        for position, name in enumerate(table.header):
            # Only the last column may wrap: a folded number is hard to read.
            last = position == len(table.header) - 1
            shown.add_column(
                name, justify="left" if position == 0 or name in _TEXT else "right", no_wrap=not last, overflow="fold"
            )
        grouped = len({row[0] for row in table.rows}) < len(table.rows)
        before = ""
        for row in table.rows:
            cells = ("" if row[0] == before else row[0], *row[1:])
            if grouped and before and row[0] != before:
                shown.add_section()
            # As Text: an id or a model name in square brackets is no markup.
            shown.add_row(*(Text(_compact(cell) if narrow else cell) for cell in cells))
            before = row[0]
        _print_whole(shown, console)
        for note in table.notes:
            console.print(Text(note, style="dim"))


def _print_whole(table: RichTable, console: Console) -> None:
    """Prints a table of which nothing is cut off: half an interval is another number.

    Where there is no window to fit, lines are as long as they need to be; in a window words wrap, then numbers.
    """
    from rich.measure import Measurement

    room = console.width
    need = Measurement.get(console, console.options.update(width=_UNBOUNDED), table).maximum
    if not console.is_terminal:
        console.width = max(room, need)
    elif need > room:
        texts = [column for column in table.columns if column.justify == "left"]
        for columns in (texts, table.columns):
            for column in columns:
                column.no_wrap = False
            if Measurement.get(console, console.options.update(width=_UNBOUNDED), table).minimum <= room:
                break
    console.print(table)
    console.width = room


def _compact(cell: str) -> str:
    """Shortens a cell for a terminal of 80 columns: `.655 (.569, .738)`, `MA1`, `all`."""
    if cell in PHASE_TITLES.values():
        return cell.split()[0]
    if cell == ", ".join(DOMAINS):
        return "all"
    shorter = re.sub(r"\b0\.(?=\d)(?!\d+%)", ".", cell).replace("macro-F1, ", "F1 ")
    return re.sub(r"\([^()]*\)", lambda interval: interval.group().replace(" to ", ", "), shorter)


def markdown_tables(summary: Mapping[str, Any]) -> str:
    """Returns the tables of a run as Markdown."""
    return as_markdown(run_tables(summary), banner=summary.get("label_banner"))


def as_markdown(tables: Sequence[Table], *, banner: str | None = None) -> str:
    """Returns tables as Markdown, a banner before them."""
    parts = [f"**{banner}**"] if banner else []
    for table in tables:
        lines = [f"### {table.title}", "", _markdown_row(table.header), _markdown_row(["---"] * len(table.header))]
        lines += [_markdown_row(row) for row in table.rows]
        lines += ["", *table.notes] if table.notes else []
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
