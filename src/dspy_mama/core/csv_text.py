"""Comma-separated text as rows that know where they stand, and the csv reader's complaints in words."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One record, however many lines its cells span.

    Attributes:
        number: 1-based row as a spreadsheet shows it; blank rows count.
        line: 1-based line of the text at which it begins.
        cells: Its cells; none in a blank row.
    """

    number: int
    line: int
    cells: list[str]

    @property
    def place(self) -> str:
        """The row, with its line where an earlier cell spans several: `row 3 (line 5)`."""
        return _place(self.number, self.line)


class CsvRowError(ValueError):
    """A row that cannot be read; the message names the row and what to do.

    Attributes:
        number: The row, as in `CsvRow`.
        reason: What is wrong with it.
    """

    def __init__(self, number: int, line: int, reason: str) -> None:
        """Makes the message of row, line and reason."""
        super().__init__(f"{_place(number, line)}: {reason}")
        self.number, self.reason = number, reason


def read_csv(text: str) -> Iterator[CsvRow]:
    """Yields the records of comma-separated text; a quoted cell may hold line breaks.

    Raises:
        CsvRowError: Broken quoting, or a cell past the csv reader's limit (131,072 characters unless it was changed).
    """
    # newline="": csv must see line ends as they are; `splitlines` would part cells, also at U+2028 and the like.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    number, line = 1, 1
    try:
        for cells in reader:
            yield CsvRow(number, line, cells)
            number, line = number + 1, reader.line_num + 1
    except csv.Error as error:
        raise CsvRowError(number, line, explain(error)) from None


def explain(error: csv.Error) -> str:
    """Returns what the csv reader found wrong, in words that say what to do."""
    words = str(error)
    if "field larger" in words:
        return (
            f"a cell of more than {csv.field_size_limit():,} characters; is a quote mark unclosed? If not, shorten it"
        )
    if "unexpected end" in words:
        return "a quote mark that opens in this row is never closed"
    return f'broken quoting ({words}); inside a quoted cell, write a quote mark twice ("")'


def _place(number: int, line: int) -> str:
    return f"row {number}" if line == number else f"row {number} (line {line})"
