"""Any csv, tsv, jsonl, json, parquet or xlsx file with a question and an answer in each row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dspy_mama.core.cases import Domain
from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.datasets.columns import ColumnMap, languages_of, map_columns
from dspy_mama.datasets.joining import join_rows
from dspy_mama.datasets.loading import Loaded, columns_in, data_files, given_path, has_text, tables_of
from dspy_mama.datasets.rows import Reading, read_rows
from dspy_mama.datasets.tables import Table
from dspy_mama.settings import DataSettings


def load_table(settings: DataSettings) -> Loaded:
    """Loads a file of any layout; columns are found by name or declared in `data.columns`.

    Without an id column, ids are made of the row number and a hash of the two texts, such as `row-2-1f0c9a7e`.

    Args:
        settings: `path` (a file, or a folder with one data file), `language`, `columns`, `encoding`.

    Raises:
        DeclarationError: Nothing is at the path, or `data.columns` does not fit the file.
        DataError: The file cannot be read, or has no question or answer column.
    """
    path = given_path(settings)
    files = data_files(path)
    if len(files) > 1:
        found = ", ".join(file.name for file in files)
        raise DeclarationError(f"data.path: {str(path)!r} is a folder of several data files ({found}); give one file")
    return load_from_tables(tables_of(files, settings.encoding), settings)


def load_from_tables(tables: list[Table], settings: DataSettings) -> Loaded:
    """Loads the one table of `tables` that has a question and an answer column.

    Raises:
        DeclarationError: `data.columns` does not fit.
        DataError: None of the tables has the columns, or several have.
    """
    table, columns = _choose(tables, settings)
    for name, column in (("question", columns.question), ("answer", columns.answer)):
        if not has_text(table, column):
            raise DataError(table.name, [Fault(None, column, _blank_column(table, name, column))])
    reading = Reading()
    read_rows(table, columns, settings.language, reading, strict_ratings=False)
    return Loaded(join_rows(reading, settings.name), reading, (table,), _definition(columns.labels))


def _choose(tables: list[Table], settings: DataSettings) -> tuple[Table, ColumnMap]:
    if len(tables) == 1:
        columns = map_columns(tables[0], settings.language, settings.columns)
        if columns.question is None or columns.answer is None:
            raise DataError(tables[0].name, [Fault(None, None, _missing(tables[0], columns, settings))])
        return tables[0], columns
    mapped = []
    for table in tables:
        try:
            columns = map_columns(table, settings.language, settings.columns)
        except DeclarationError:
            continue
        if columns.question is not None and columns.answer is not None:
            mapped.append((table, columns))
    if len(mapped) == 1:
        return mapped[0]
    sheets = "; ".join(columns_in(table) for table in tables)
    what = "several sheets have" if mapped else "no sheet has"
    reason = f"{what} a question and an answer column ({sheets}); save the sheet you mean as a file of its own"
    raise DataError(tables[0].name.partition("#")[0] if tables else "data", [Fault(None, None, reason)])


def _missing(table: Table, columns: ColumnMap, settings: DataSettings) -> str:
    absent = [name for name in ("question", "answer") if getattr(columns, name) is None]
    codes = sorted(languages_of(table.columns))
    if codes:
        return f"no {' and '.join(absent)} in {settings.language!r}; set data.language to one of: {', '.join(codes)}"
    return (
        f"no column for {' and '.join(absent)}; {columns_in(table)}. "
        f"Name it, such as data.columns.{absent[0]}='{table.columns[0]}'"
    )


def _blank_column(table: Table, name: str, column: str | None) -> str:
    codes = [code for code in languages_of(table.columns) if has_text(table, _column_of(table, name, code))]
    hint = f"; data.language could be {', '.join(sorted(codes))}" if codes else ""
    return f"blank in every row of {Path(table.name).name}{hint}"


def _column_of(table: Table, name: str, code: str) -> str | None:
    return next(
        (c for c in table.columns if c.casefold() in (f"{name}_{code}", f"{name}{code}", f"{name} {code}")), None
    )


def _definition(labels: Mapping[Domain, str]) -> str:
    named = ", ".join(f"{domain}: column {column!r}" for domain, column in labels.items())
    return f"TRUE, 1 or yes is risky ({named})" if named else "the file has no labels"
