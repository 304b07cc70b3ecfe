"""What loaders share: the files behind a path, and what a loader hands to the registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.datasets.rows import Reading
from dspy_mama.datasets.tables import SUFFIXES, Table, read_tables
from dspy_mama.settings import DataSettings


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a loader returns.

    Attributes:
        pairs: Complete pairs, in file order.
        reading: Faults and notices met on the way.
        tables: The tables the pairs came from.
        label_definition: What makes a pair risky in this data set, in words.
    """

    pairs: list[QAPair]
    reading: Reading
    tables: tuple[Table, ...]
    label_definition: str


def given_path(settings: DataSettings) -> Path:
    """Returns the path of the settings.

    Raises:
        DeclarationError: There is none, or nothing is there.
    """
    if settings.path is None:
        raise DeclarationError(f"data.path: data={settings.name} needs the file or folder of the data set")
    path = Path(settings.path).expanduser()
    if not path.exists():
        near = "" if path.parent.is_dir() else f"; its folder {str(path.parent)!r} is not there either"
        raise DeclarationError(f"data.path: {str(path)!r} does not exist{near}")
    return path


def data_files(path: Path) -> list[Path]:
    """Returns the file, or the data files of a folder (not of its sub-folders) by name.

    Text and json files of a folder are left out: next to data they are read-me files and configurations.

    Raises:
        DataError: The folder holds no data file.
    """
    if not path.is_dir():
        return [path]
    kinds = [suffix for suffix in SUFFIXES if suffix not in (".txt", ".json")]
    files = [f for f in sorted(path.iterdir()) if f.suffix.lower() in kinds and not f.name.startswith((".", "~$"))]
    if not files:
        raise DataError(str(path), [Fault(None, None, f"the folder holds no data file ({', '.join(kinds)})")])
    return files


def tables_of(files: Sequence[Path], encoding: str | None) -> list[Table]:
    """Returns every table of the files.

    Raises:
        DataError: A file cannot be read.
    """
    return [table for file in files for table in read_tables(file, encoding)]


def has_text(table: Table, column: str | None) -> bool:
    """Tells whether a column is there and has a cell that is not blank, or that has something unreadable in it."""
    if column is None:
        return False
    return any(text.strip() for text in table.cells[column]) or any(marked == column for _, marked in table.marks)


def columns_in(table: Table) -> str:
    """Returns the columns of a table as a message shows them."""
    return f"{Path(table.name).name} has the columns: {', '.join(table.columns)}"
