"""Labels and probabilities that were made anywhere, out of any table: no texts needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core.cases import DOMAINS, Domain
from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.datasets import cells
from dspy_mama.datasets.label_columns import Role, label_columns
from dspy_mama.datasets.tables import Table, read_tables

_WORDS: Final = {"risky": True, "unsafe": True, "safe": False, "not risky": False}
_NONE: Final = frozenset(["undetermined", "unscored", "unknown", "n/a", "na", "nan", "null", "none", "-"])


@dataclass(frozen=True)
class LabelFile:
    """Labels of one file.

    Attributes:
        name: The file, for messages.
        ids: Id of each row, or None where the file has no ids.
        repeats: Repetition of each row, shape (rows,).
        labels: 1 risky, 0 safe, -1 missing, by domain; a domain that the file does not hold is absent.
        probability: Probability of risk, NaN where missing, by domain.
        extra: Columns of a gold file without a meaning here, as text, for clustering.
        facts: Name, hash and columns, for whoever wants to know what was read.
    """

    name: str
    ids: tuple[str, ...] | None
    repeats: npt.NDArray[np.int64]
    labels: Mapping[Domain, npt.NDArray[np.int8]]
    probability: Mapping[Domain, npt.NDArray[np.float64]]
    extra: Mapping[str, list[str]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.repeats)


def read_labels(
    path: str | Path,
    role: Role,
    *,
    columns: Mapping[str, str] | None = None,
    only: Domain | None = None,
    encoding: str | None = None,
) -> LabelFile:
    """Reads a file of gold labels or of predictions: csv, tsv, jsonl, json, parquet or xlsx.

    Args:
        path: The file.
        role: `gold`, where a cell is a label or blank, or `predictions`, where it may also say that there is none.
        columns: Field -> column, where names do not tell.
        only: The file holds this domain alone.
        encoding: Encoding of a text file; None = found from the bytes.

    Raises:
        DeclarationError: The file is not there, or a declared column is not in it.
        DataError: The file cannot be read, or cells are no labels, probabilities or unique ids; all are named.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise DeclarationError(f"{file}: there is no such file")
    tables = read_tables(file, encoding)
    if len(tables) > 1:
        tables = [table for table in tables if _has_labels(table, role, columns or {}, only)] or tables[:1]
    if len(tables) > 1:
        sheets = ", ".join(table.name.rpartition("#")[2] for table in tables)
        raise DataError(str(file), [Fault(None, None, f"several sheets hold labels ({sheets}); save one as a file")])
    return _read(tables[0], role, label_columns(tables[0], role, columns or {}, only))


def _has_labels(table: Table, role: Role, columns: Mapping[str, str], only: Domain | None) -> bool:
    try:
        label_columns(table, role, columns, only)
    except DeclarationError:
        return False
    return True


def _read(table: Table, role: Role, found: Mapping[str, str]) -> LabelFile:
    faults: list[Fault] = []
    for (row, column), why in table.marks.items():
        if column in found.values():
            faults.append(Fault(row, column, why))
    parse_label = cells.parse_label if role == "gold" else parse_verdict
    labels: dict[Domain, npt.NDArray[np.int8]] = {}
    probability: dict[Domain, npt.NDArray[np.float64]] = {}
    for domain in DOMAINS:
        if domain in found:
            said = _parsed(table, found[domain], parse_label, faults)
            labels[domain] = np.array([-1 if v is None else int(v) for v in said], dtype=np.int8)
        if f"{domain}_probability" in found:
            chances = _parsed(table, found[f"{domain}_probability"], parse_probability, faults)
            probability[domain] = np.array([np.nan if v is None else v for v in chances], dtype=np.float64)
    repeats = [v or 0 for v in _parsed(table, found["repeat"], _whole, faults)] if "repeat" in found else None
    counted = np.zeros(len(table.rows), dtype=np.int64) if repeats is None else np.array(repeats, dtype=np.int64)
    ids = _ids(table, found["id"], counted, faults) if "id" in found else None
    if faults:
        raise DataError(table.name, sorted(faults, key=lambda fault: fault.row or 0))
    facts = {**{key: table.facts.get(key) for key in ("name", "sha256", "rows")}, "columns": dict(found)}
    # The other columns of a million rows of predictions would only take memory.
    extra = {name: texts for name, texts in table.cells.items() if role == "gold" and name not in found.values()}
    return LabelFile(table.name, ids, counted, labels, probability, extra, facts)


def _parsed(table: Table, column: str, parse: Callable[[str], Any], faults: list[Fault]) -> list[Any]:
    """Parses a column; cells that say the same are read once, for there may be a million of them."""
    known: dict[str, Any] = {}
    out: list[Any] = []
    for row, text in zip(table.rows, table.cells[column], strict=True):
        if text not in known:
            try:
                known[text] = parse(text)
            except ValueError as error:
                faults.append(Fault(row, column, str(error)))
                out.append(None)
                continue
        out.append(known[text])
    return out


def parse_verdict(text: str) -> bool | None:
    """Returns what a cell of predictions says: True = risky, False = safe, None = no verdict.

    Raises:
        ValueError: The cell says something else.
    """
    word = " ".join(text.split()).casefold()
    if word in _NONE:
        return None
    return _WORDS[word] if word in _WORDS else cells.parse_label(text)


def parse_probability(text: str) -> float | None:
    """Returns a probability in [0, 1], or None for a cell that holds none.

    Raises:
        ValueError: The cell is no such number.
    """
    word = text.strip().casefold()
    if cells.is_blank(text) or word in _NONE:
        return None
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{cells.shorten(text)} is not a probability between 0 and 1") from None
    if not 0 <= value <= 1:
        raise ValueError(f"{cells.shorten(text)} is not a probability between 0 and 1")
    return value


def _whole(text: str) -> int | None:
    if cells.is_blank(text):
        return None
    if not text.strip().isdecimal():
        raise ValueError(f"{cells.shorten(text)} is not a whole number")
    return int(text)


def _ids(table: Table, column: str, repeats: npt.NDArray[np.int64], faults: list[Fault]) -> tuple[str, ...]:
    texts = [text.replace("\u200b", "").strip() for text in table.cells[column]]
    if any("." in text for text in texts) and all(_is_whole(text) for text in texts):
        texts = [text.partition(".")[0] for text in texts]  # spreadsheets and pandas write 7 as 7.0
    if all(texts) and not repeats.any() and len(set(texts)) == len(texts):
        return tuple(texts)
    seen: dict[tuple[str, int], int] = {}
    for row, text, repeat in zip(table.rows, texts, repeats.tolist(), strict=True):
        if not text:
            faults.append(Fault(row, column, "no id"))
        elif (other := seen.setdefault((text, repeat), row)) != row:
            faults.append(Fault(row, column, f"the id {text!r} is in row {other} too; ids must be unique"))
    return tuple(texts)


def _is_whole(text: str) -> bool:
    head, _, tail = text.partition(".")
    return head.isdecimal() and not tail.strip("0")
