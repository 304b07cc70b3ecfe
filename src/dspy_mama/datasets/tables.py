"""A file as a table of text columns (a Hugging Face `Dataset` on demand), with the row numbers people see."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dspy_mama.core.errors import DataError, Fault
from dspy_mama.datasets.cells import is_blank
from dspy_mama.datasets.columnar import columns_of, read_json, read_json_lines, read_parquet, text_of
from dspy_mama.datasets.delimited import Grid, read_delimited
from dspy_mama.datasets.encoding import decode
from dspy_mama.datasets.workbook import read_workbook

if TYPE_CHECKING:
    from datasets import Dataset

SUFFIXES: Final = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx", ".xlsm")
_SURROGATE = re.compile("[\ud800-\udfff]")
_REFUSED: Final = (
    (b"\xd0\xcf\x11\xe0", "an old .xls or password-protected workbook; save it as .xlsx without a password"),
    (b"version https://git-lfs", "a Git LFS pointer, not the data; fetch the file with `git lfs pull`"),
    (b"<!DOCTYPE", "a web page, not a table; download the file itself"),
    (b"<html", "a web page, not a table; download the file itself"),
    (b"\x1f\x8b", "compressed; unpack it first"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a file.

    Attributes:
        name: File name, with `#sheet` where a workbook has several.
        cells: All named columns as exact text (line ends as LF), blank rows left out.
        rows: Row number per row of `cells`: as a spreadsheet shows it (the header is row 1) for csv, tsv and xlsx,
            counted from 1 for jsonl (lines), json and parquet.
        marks: Why a cell has no readable value, per (row number, column).
        facts: How the file was read: format, sha256, encoding, delimiter, sheet, rows, whether cells hold line breaks.
        notices: What was left out or mended, in words.
        repeated: Names that head more than one column; `cells` holds the first of them.
        from_spreadsheet: csv, tsv and xlsx, where ids may have been changed into dates and numbers.
    """

    name: str
    cells: Mapping[str, list[str]]
    rows: tuple[int, ...]
    marks: Mapping[tuple[int, str], str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    repeated: frozenset[str] = frozenset()
    from_spreadsheet: bool = False

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in file order."""
        return list(self.cells)

    @property
    def data(self) -> Dataset:
        """The cells as a Hugging Face `Dataset`, made anew each time."""
        from datasets import Dataset, Features, Value

        return Dataset.from_dict(dict(self.cells), features=Features({c: Value("string") for c in self.cells}))

    def __iter__(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yields row number and cells by column."""
        names = self.columns
        records = (dict(zip(names, row, strict=True)) for row in zip(*self.cells.values(), strict=True))
        return zip(self.rows, records, strict=True)


def read_tables(path: Path, encoding: str | None = None) -> list[Table]:
    """Reads a csv, tsv, jsonl, json, parquet or xlsx file; a workbook gives one table a sheet.

    Args:
        path: The file. What it is is told by its first bytes, then by its name.
        encoding: Encoding of a text file; None = found from the bytes.

    Raises:
        DataError: The file cannot be read, is empty, or is of another kind.
        DeclarationError: The encoding is unknown.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(str(path), [Fault(None, None, f"cannot be read ({error.strerror or error})")]) from None
    if not data.strip(b"\0 \r\n\t\xef\xbb\xbf"):
        raise DataError(str(path), [Fault(None, None, "the file is empty")])
    for magic, reason in _REFUSED:
        if data[: len(magic)].lower() == magic.lower():
            raise DataError(str(path), [Fault(None, None, f"this is {reason}")])
    facts = {"name": path.name, "sha256": hashlib.sha256(data).hexdigest()}
    return [_with_facts(table, facts) for table in _parse(path, data, encoding)]


def table_from_records(name: str, records: Sequence[tuple[int, Mapping[str, Any]]], **facts: Any) -> Table:
    """Builds a table from row numbers and typed records.

    Args:
        name: Name of the table, for messages.
        records: Row number and values by column.
        **facts: How the records were read.
    """
    entries = list(records)
    columns = columns_of(entries)
    cells = [(number, [text_of(record.get(column)) for column in columns]) for number, record in entries]
    nested = "holds an object or a list, not text; give the text alone"
    marks = {
        (number, columns.index(column)): nested
        for number, record in entries
        for column, value in record.items()
        if _is_nested(value)
    }
    return _build(name, columns, Grid(cells, marks), facts, from_spreadsheet=False)


def _is_nested(value: Any) -> bool:
    """Tells whether a value is more than a cell; a list of numbers is a rating."""
    if isinstance(value, (list, tuple)):
        return not all(isinstance(item, int) for item in value)
    return isinstance(value, dict)


def _parse(path: Path, data: bytes, encoding: str | None) -> list[Table]:
    name, suffix = str(path), path.suffix.lower()
    if data.startswith(b"PK\x03\x04"):
        return _sheets(name, read_workbook(data, name))
    if data.startswith(b"PAR1"):
        return [table_from_records(name, read_parquet(data, name), format="parquet")]
    if suffix in (".xlsx", ".xlsm", ".parquet") or suffix not in SUFFIXES:
        reason = (
            f"not a {suffix} file inside" if suffix in SUFFIXES else f"the ending {suffix!r} is not one that is read"
        )
        raise DataError(name, [Fault(None, None, f"{reason}; give csv, tsv, jsonl, json, parquet or xlsx")])
    text, codec = decode(data, name, encoding)
    if suffix in (".jsonl", ".ndjson", ".json"):
        reader, kind = (read_json, "json") if suffix == ".json" else (read_json_lines, "jsonl")
        table = table_from_records(name, reader(text, name), format=kind, encoding=codec)
    else:
        table = _from_grid(name, read_delimited(text, name), {"format": "delimited", "encoding": codec})
    if encoding is None and not codec.startswith(("utf", "UTF")):
        table = replace(table, notices=(*table.notices, f"read as {codec}; name data.encoding if letters look wrong"))
    return [table]


def _sheets(name: str, grids: Mapping[str, Grid]) -> list[Table]:
    """Returns the tables of a workbook; sheets with only a title or a header do not stand in another's way."""
    if not grids:
        raise DataError(name, [Fault(None, None, "no visible sheet of the workbook holds a cell")])
    label = "{}#{}" if len(grids) > 1 else "{}"
    tables, faulty = [], []
    for sheet, grid in grids.items():
        try:
            tables.append(_from_grid(label.format(name, sheet), grid, {"format": "xlsx", "sheet": sheet}))
        except DataError as error:
            faulty.append(error)
    if not tables:
        raise faulty[0]
    return tables


def _with_facts(table: Table, facts: Mapping[str, Any]) -> Table:
    return replace(table, facts={**facts, **table.facts, "rows": len(table.rows)})


def _from_grid(name: str, grid: Grid, facts: Mapping[str, Any]) -> Table:
    filled = [sum(1 for cell in cells if not is_blank(cell)) for _, cells in grid.rows]
    if not any(filled):
        raise DataError(name, [Fault(None, None, "the file holds no cells")])
    # One cell alone is a title above the header: a table of pairs has at least two columns.
    start = next((index for index, count in enumerate(filled) if count > 1), None)
    if start is None:
        start = next(index for index, count in enumerate(filled) if count)
    grid.notices.extend(f"row {grid.rows[i][0]} is a title above the header" for i in range(start) if filled[i])
    header = [_header_name(cell) for cell in grid.rows[start][1]]
    body = replace(grid, rows=grid.rows[start + 1 :])
    if facts["format"] == "xlsx":
        # A cell beside a sheet's table is a stray; in delimited text it is a delimiter that nobody quoted.
        header += [""] * (max((len(cells) for _, cells in body.rows), default=0) - len(header))
    else:
        _check_widths(name, header, body)
    return _build(name, header, body, {**facts, **grid.facts}, from_spreadsheet=True)


def _header_name(cell: str) -> str:
    return unicodedata.normalize("NFKC", cell).replace("\u200b", "").replace("\ufeff", "").strip()


def _build(name: str, header: list[str], grid: Grid, facts: Mapping[str, Any], from_spreadsheet: bool) -> Table:
    named = {column: index for index, column in reversed(list(enumerate(header))) if column}
    named = dict(sorted(named.items(), key=lambda item: item[1]))
    marks = {(row, header[column]): why for (row, column), why in grid.marks.items() if column < len(header)}
    kept = [(number, cells) for number, cells in grid.rows if any(not is_blank(cell) for cell in cells)]
    columns: dict[str, list[str]] = {column: [] for column in named}
    for number, cells in kept:
        for column, index in named.items():
            text, why = _storable(cells[index] if index < len(cells) else "")
            columns[column].append(text)
            if why:
                marks[number, column] = why
    if not kept:
        raise DataError(name, [Fault(None, None, "there are no rows below the header")])
    notices = [*grid.notices, *_header_notices(header, named, kept)]
    if blank := len(grid.rows) - len(kept):
        notices.append(f"{blank} blank row(s) left out")
    facts = {**facts, "line_breaks": any("\n" in text for texts in columns.values() for text in texts)}
    rows, repeated = tuple(number for number, _ in kept), frozenset(c for c in named if header.count(c) > 1)
    return Table(name, columns, rows, marks, facts, tuple(notices), repeated, from_spreadsheet)


def _storable(cell: str) -> tuple[str, str | None]:
    """Returns the cell with LF line ends and, where Arrow or a C library could not hold it, why."""
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        return text.replace("\0", "\ufffd"), "holds a NUL byte; export the file again as text"
    if _SURROGATE.search(text):
        return _SURROGATE.sub("\ufffd", text), "holds half a character (a lone surrogate); write the text as UTF-8"
    return text, None


def _check_widths(name: str, header: list[str], grid: Grid) -> None:
    faults = []
    for number, cells in grid.rows:
        if any(not is_blank(cell) for cell in cells[len(header) :]):
            reason = f"{len(cells)} cells under a header of {len(header)}; quote texts that hold the delimiter"
            faults.append(Fault(number, None, reason))
    if faults:
        raise DataError(name, faults)


def _header_notices(header: list[str], named: Mapping[str, int], kept: list[tuple[int, list[str]]]) -> list[str]:
    notices = []
    for index, column in enumerate(header):
        if column and named[column] == index:
            continue
        rows = [number for number, cells in kept if index < len(cells) and not is_blank(cells[index])]
        is_index = index == 0 and not column and all(cells[0].isdigit() for _, cells in kept if cells)
        if rows and not is_index:
            what = f"second column {column!r}" if column else f"unnamed column {index + 1}"
            shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
            notices.append(f"{what} left out; it has text in row(s) {shown}")
    return notices
