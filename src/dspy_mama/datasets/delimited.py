"""Delimited text (csv, tsv) to a grid of cells, with the row numbers a spreadsheet shows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from dspy_mama.core.csv_text import explain
from dspy_mama.core.errors import DataError, Fault
from dspy_mama.datasets.cells import is_blank

_DELIMITERS: Final = (",", ";", "\t", "|")
_SAMPLE: Final = 30
"""Records looked at to find the delimiter."""
_LINE_END: Final = re.compile(r"\r\n|\r")


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of one table before its header is known.

    Attributes:
        rows: Row number (1-based) and cells, top down; blank rows included.
        marks: Reason per (row number, 0-based column) for cells without a readable value.
        facts: How the grid was read, for the manifest.
        notices: What was mended, in words.
    """

    rows: list[tuple[int, list[str]]]
    marks: dict[tuple[int, int], str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def read_delimited(text: str, name: str) -> Grid:
    """Reads delimited text; the delimiter (comma, semicolon, tab, bar) is found from the first records.

    A record is a row, as in a spreadsheet, however many lines its cells span.

    Args:
        text: The decoded file.
        name: Name of the file, for messages.

    Raises:
        DataError: Broken quoting, or a cell past the csv reader's limit of 131,072 characters.
    """
    hint, text = _separator_hint(text)
    delimiter = hint or _find_delimiter(text, tabs_first=name.lower().endswith((".tsv", ".txt")))
    facts = {"delimiter": {"\t": "tab"}.get(delimiter, delimiter)}
    rows: list[tuple[int, list[str]]] = []
    try:
        for number, cells in enumerate(_records(text, delimiter), start=1):
            rows.append((number, cells))
    except csv.Error as error:
        bare = _bare_tabs(text) if delimiter == "\t" else None
        if bare is None:
            raise DataError(name, [Fault(len(rows) + 1, None, explain(error))]) from None
        return Grid(bare, facts=facts, notices=["quote marks are part of the text, not quoting"])
    return Grid(rows, facts=facts)


def _records(text: str, delimiter: str, strict: bool = True) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)


def _separator_hint(text: str) -> tuple[str | None, str]:
    """Takes off Excel's first line `sep=;`, which no spreadsheet counts as a row."""
    line, _, rest = text.partition("\n")
    line = line.rstrip("\r").strip('"')
    return (line[4:], rest) if line.lower().startswith("sep=") and len(line) == 5 else (None, text)


def _find_delimiter(text: str, tabs_first: bool) -> str:
    best, best_score = ("\t" if tabs_first else ","), (0.0, 1)
    for delimiter in _DELIMITERS:
        try:
            head = [
                row for row in islice(_records(text, delimiter, strict=False), _SAMPLE) if not is_blank("".join(row))
            ]
        except csv.Error:
            continue
        # The first record with two cells is the header; what stands above it is a title.
        width = next((len(row) for row in head if len(row) > 1), 0)
        if not width:
            continue
        score = (sum(1 for row in head if len(row) == width) / len(head), width)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _bare_tabs(text: str) -> list[tuple[int, list[str]]] | None:
    """Reads tab-separated text that never quotes; None unless every line then has the header's width."""
    # Not splitlines(): a cell may hold U+2028, U+0085 and their like, which are no line ends here.
    lines = [line.split("\t") for line in _LINE_END.sub("\n", text).removesuffix("\n").split("\n")]
    widths = {len(cells) for cells in lines if not is_blank("".join(cells))}
    return list(enumerate(lines, start=1)) if len(widths) == 1 else None
