"""Tables with one item in each row: the one file behind a path, the columns under their names, ids that stand twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from dspy_mama.core.errors import DeclarationError, Fault
from dspy_mama.datasets.loading import columns_in, data_files, given_path, tables_of
from dspy_mama.datasets.tables import Table
from dspy_mama.settings import DataSettings


def single_table(settings: DataSettings) -> Table:
    """Returns the table of a file, or of a folder with one data file.

    Raises:
        DeclarationError: Nothing is at the path, or the folder holds several data files.
        DataError: The file cannot be read.
    """
    path = given_path(settings)
    files = data_files(path)
    if len(files) > 1:
        found = ", ".join(file.name for file in files)
        raise DeclarationError(f"data.path: {str(path)!r} is a folder of several data files ({found}); give one file")
    return tables_of(files, settings.encoding)[0]


def mapped_columns(
    table: Table,
    settings: DataSettings,
    names: Mapping[str, Sequence[str]],
    *,
    what: str,
    plain: Callable[[str], str],
) -> dict[str, str]:
    """Returns the column of each field that the table has.

    Args:
        table: The table.
        settings: Its `columns` stand over what is found by name.
        names: Names under which each field is found, the preferred one first.
        what: What the rows are, for messages.
        plain: How a column's name is read before it is compared.

    Raises:
        DeclarationError: `data.columns` names a field or a column that does not exist.
    """
    if unknown := sorted(set(settings.columns) - set(names)):
        raise DeclarationError(
            f"data.columns: {', '.join(unknown)} mean(s) nothing for {what}; known: {', '.join(names)}"
        )
    if absent := sorted(set(settings.columns.values()) - set(table.columns)):
        raise DeclarationError(f"data.columns: no column {', '.join(absent)}; {columns_in(table)}")
    found: dict[str, str] = {}
    for field, known in names.items():
        fits = [column for name in known for column in table.columns if plain(column) == name]
        found |= {field: fits[0]} if fits else {}
    return {**found, **settings.columns}


def repeated_ids(ids: Iterable[str], column: str | None) -> list[Fault]:
    """Returns a fault for each id that stands more than once."""
    return [Fault(None, column, f"{name!r} occurs {count} times") for name, count in Counter(ids).items() if count > 1]
