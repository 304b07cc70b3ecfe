"""Rows of tables, cell by cell: every cell is checked and every fault has its row."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dspy_mama.core.cases import Domain
from dspy_mama.core.errors import Fault
from dspy_mama.core.ids import content_hash
from dspy_mama.datasets import cells
from dspy_mama.datasets.columns import ColumnMap
from dspy_mama.datasets.tables import Table

_WHOLE = re.compile(r"\d+(\.0+)?")
_KANA = re.compile(r"[ぁ-ゖァ-ヺ]")


@dataclass(frozen=True, slots=True)
class RowFault:
    """A fault of one row, and the file it is in."""

    table: str
    fault: Fault


@dataclass(slots=True)
class Row:
    """What one row says of one pair; blank texts are filled from other files of the same data set, if there are any."""

    table: str
    number: int
    id: str
    question: str
    answer: str
    language: str | None
    gold: dict[Domain, bool]
    notes: dict[Domain, str]
    extra: dict[str, Any]
    columns: ColumnMap


@dataclass(slots=True)
class Reading:
    """Rows read so far, with what was found wrong and what was mended."""

    rows: list[Row] = field(default_factory=list)
    faults: list[RowFault] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def add_fault(self, row: tuple[str, int], column: str | None, reason: str) -> None:
        """Notes a fault of a row, given as (table, row number)."""
        self.faults.append(RowFault(row[0], Fault(row[1], column, reason)))


def read_rows(table: Table, columns: ColumnMap, language: str, reading: Reading, strict_ratings: bool) -> None:
    """Reads every row of a table into `reading`.

    Args:
        table: The table.
        columns: Which column is which field.
        language: Language of the texts where no column names it (kana still prove Japanese in unmarked columns).
        reading: Receives rows, faults and notices.
        strict_ratings: A rating cell that is no list of five counts is a fault; else it is kept as text.
    """
    mended = _id_mender(table, columns, reading)
    for number, record in table:
        where = (table.name, number)
        before = len(reading.faults)
        marked = [(column, why) for column in columns.used if (why := table.marks.get((number, column)))]
        for column, why in marked:
            reading.add_fault(where, column, why)
        if marked:
            continue
        row = _row(table, number, record, columns, language, mended, reading, strict_ratings)
        if len(reading.faults) == before:
            reading.rows.append(row)


def _row(
    table: Table,
    number: int,
    record: dict[str, str],
    columns: ColumnMap,
    language: str,
    mended: Callable[[str], str],
    reading: Reading,
    strict_ratings: bool,
) -> Row:
    where = (table.name, number)
    question, answer = (_text(record, column, where, reading) for column in (columns.question, columns.answer))
    notes = {
        domain: text
        for domain, names in columns.notes.items()
        if (text := next((t for n in names if (t := _text(record, n, where, reading))), ""))
    }
    extra = {c: v for c, v in record.items() if c not in columns.used and not cells.is_blank(v) and not _is_index(c)}
    extra |= _ratings(record, columns, where, reading, strict_ratings)
    return Row(
        table=table.name,
        number=number,
        id=_id(table, number, record, columns, mended, question + "\n" + answer, reading),
        question=question,
        answer=answer,
        language=_language(record, columns, language, question),
        gold=_gold(record, columns, where, reading),
        notes=notes,
        extra=extra,
        columns=columns,
    )


def _is_index(column: str) -> bool:
    return column.startswith("Unnamed:") or column.startswith("__index_level_")


def _text(record: dict[str, str], column: str | None, where: tuple[str, int], reading: Reading) -> str:
    text = record[column] if column is not None else ""
    if cells.is_blank(text):
        return ""
    if reason := cells.text_fault(text):
        reading.add_fault(where, column, reason)
    elif doubt := cells.text_doubt(text):
        reading.notices.append(f"{Path(where[0]).name}, row {where[1]}, column {column!r}: {doubt}")
    return text


def _gold(record: dict[str, str], columns: ColumnMap, where: tuple[str, int], reading: Reading) -> dict[Domain, bool]:
    gold: dict[Domain, bool] = {}
    for domain, column in columns.labels.items():
        try:
            label = cells.parse_label(record[column])
        except ValueError as error:
            reading.add_fault(where, column, str(error))
            continue
        if label is not None:
            gold[domain] = label
    return gold


def _ratings(
    record: dict[str, str], columns: ColumnMap, where: tuple[str, int], reading: Reading, strict: bool
) -> dict[str, Any]:
    ratings: dict[str, Any] = {}
    for column in columns.ratings:
        try:
            counts = cells.parse_counts(record[column])
        except ValueError as error:
            if strict:
                reading.add_fault(where, column, str(error))
            else:
                ratings[column] = record[column]
            continue
        if counts is not None:
            ratings[column.casefold()] = counts
    return ratings


def _id_mender(table: Table, columns: ColumnMap, reading: Reading) -> Callable[[str], str]:
    """Returns what takes off the `.0` that spreadsheets and pandas add, where all ids are whole numbers."""
    ids = [text.strip() for text in table.cells[columns.id] if text.strip()] if columns.id else []
    if not any("." in text for text in ids) or not all(_WHOLE.fullmatch(text) for text in ids):
        return str
    reading.notices.append(f"{Path(table.name).name}: ids such as {ids[0]!r} read as whole numbers")
    return lambda text: text.partition(".")[0]


def _id(
    table: Table,
    number: int,
    record: dict[str, str],
    columns: ColumnMap,
    mended: Callable[[str], str],
    content: str,
    reading: Reading,
) -> str:
    if columns.id is None:
        return f"row-{number}-{content_hash(content, 8)}"
    text = mended(record[columns.id].replace("\ufeff", "").replace("\u200b", "").strip())
    if reason := cells.id_fault(text, table.from_spreadsheet):
        reading.add_fault((table.name, number), columns.id, reason)
    return text


def _language(record: dict[str, str], columns: ColumnMap, language: str, question: str) -> str | None:
    if columns.language is not None and not cells.is_blank(record[columns.language]):
        return record[columns.language].strip().casefold()
    if not columns.suffixed and _KANA.search(question):
        return "ja"
    return language
