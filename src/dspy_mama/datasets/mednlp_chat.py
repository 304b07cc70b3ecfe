"""The official MedNLP-CHAT files, and the bundled sample that has their columns.

Source: NTCIR-18 MedNLP-CHAT task; one row a pair, question and answer in three languages, three expert labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.core.resources import shipped
from dspy_mama.datasets.columns import ColumnMap, languages_of, map_columns
from dspy_mama.datasets.joining import join_rows
from dspy_mama.datasets.loading import Loaded, columns_in, data_files, given_path, has_text, tables_of
from dspy_mama.datasets.rows import Reading, read_rows
from dspy_mama.datasets.tables import Table
from dspy_mama.settings import DataSettings

_EXPERT: Final = "TRUE in medicalRisk, ethicalRisk or legalRisk (expert label of the answer) is risky"
_ILLUSTRATIVE: Final = (
    "TRUE in medicalRisk, ethicalRisk or legalRisk is risky; illustrative labels, written with the texts, "
    "not given by experts"
)


def load_mednlp_chat(settings: DataSettings) -> Loaded:
    """Loads the official files: one file, or a folder whose files are joined by id.

    A folder may hold a sheet of texts and a sheet of gold labels (as the German set does), several sets, and files
    without texts in the wanted language, which are left out with a notice.

    Args:
        settings: `path`, `language` (`ja`, `en`, `fr`, `de`, as the files have it), `columns`, `encoding`.

    Raises:
        DeclarationError: Nothing is at the path, or no file has texts in the language.
        DataError: A file cannot be read.
    """
    path = given_path(settings)
    return _load(data_files(path), str(path), settings, _EXPERT)


def load_sample(settings: DataSettings) -> Loaded:
    """Loads the 40 bundled pairs (Japanese and English).

    Raises:
        DeclarationError: `data.path` is set, or the language is not there.
    """
    if settings.path is not None:
        raise DeclarationError("data.path: data=sample is the bundled file; use data=table for a file of your own")
    file = shipped("data", "sample", "pairs.csv")
    return _load([file], str(file), settings, _ILLUSTRATIVE)


def _load(files: list[Path], name: str, settings: DataSettings, definition: str) -> Loaded:
    tables = tables_of(files, settings.encoding)
    reading = Reading()
    texts, gold = _sort(tables, settings, reading)
    if not texts:
        raise _no_texts(tables, name, settings, bool(gold))
    for table, columns in texts:
        read_rows(table, columns, settings.language, reading, strict_ratings=True)
    used = [table for table, _ in texts]
    known = _ids(texts)
    for table, columns in gold:
        if known.isdisjoint(_ids([(table, columns)])):
            reading.notices.append(f"{Path(table.name).name} left out: none of its ids has a {settings.language} text")
            continue
        read_rows(table, columns, settings.language, reading, strict_ratings=True)
        used.append(table)
    return Loaded(join_rows(reading, settings.name), reading, tuple(used), definition)


def _sort(
    tables: list[Table], settings: DataSettings, reading: Reading
) -> tuple[list[tuple[Table, ColumnMap]], list[tuple[Table, ColumnMap]]]:
    """Returns the tables with texts in the language, and those with labels alone."""
    texts, gold = [], []
    for table in tables:
        columns = map_columns(table, settings.language, settings.columns)
        name = Path(table.name).name
        if columns.id is None:
            if len(tables) == 1:
                reason = f"there is no id column; {columns_in(table)}. For a file of another layout use data=table"
                raise DataError(table.name, [Fault(None, "id", reason)])
            reading.notices.append(f"{name} left out: it has no id column")
        elif has_text(table, columns.question) or has_text(table, columns.answer):
            texts.append((table, columns))
        elif columns.labels and not _languages_with_text(table):
            gold.append((table, columns))
        else:
            reading.notices.append(f"{name} left out: it has no {settings.language} text and no labels alone")
    return texts, gold


def _languages_with_text(table: Table) -> list[str]:
    there = languages_of(table.columns)
    names = {column.casefold().replace(" ", ""): column for column in table.columns}
    return [
        code
        for code, parts in there.items()
        if parts == {"question", "answer"}
        and any(
            has_text(table, column) for key, column in names.items() if key in (f"question_{code}", f"question{code}")
        )
    ]


def _no_texts(tables: list[Table], name: str, settings: DataSettings, labels_only: bool) -> DeclarationError:
    codes = sorted({code for table in tables for code in _languages_with_text(table)})
    if codes:
        return DeclarationError(
            f"data.language: {name} has no question and answer in {settings.language!r}; "
            f"it has {', '.join(codes)}: set data.language to one of them"
        )
    if labels_only:
        reason = (
            "has ids and labels but no question or answer; put it in one folder with the file of the texts "
            "and give the folder as data.path: they are joined by id"
        )
    else:
        layout = "; ".join(columns_in(table) for table in tables)
        reason = (
            f"no question_{settings.language} and answer_{settings.language}; {layout}. "
            "For a file of another layout use data=table"
        )
    return DataError(name, [Fault(None, None, reason)])


def _ids(tables: list[tuple[Table, ColumnMap]]) -> set[str]:
    return {text.strip() for table, columns in tables if columns.id for text in table.cells[columns.id] if text.strip()}
