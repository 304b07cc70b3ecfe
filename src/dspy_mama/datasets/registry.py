"""From settings to pairs: the loaders by name, the selection of pairs, and the facts a manifest keeps.

To add a data set, write a function from `DataSettings` to `Loaded` and enter it in `LOADERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from dspy_mama.core.cases import DOMAINS, QAPair
from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.datasets.any_table import load_from_tables, load_table
from dspy_mama.datasets.joining import label_counts
from dspy_mama.datasets.kqa import load_kqa
from dspy_mama.datasets.loading import Loaded
from dspy_mama.datasets.mednlp_chat import load_mednlp_chat, load_sample
from dspy_mama.datasets.rows import RowFault
from dspy_mama.datasets.selection import select
from dspy_mama.datasets.tables import table_from_records
from dspy_mama.settings import DataSettings

if TYPE_CHECKING:
    from datasets import Dataset

Loader = Callable[[DataSettings], Loaded]

LOADERS: Final[Mapping[str, Loader]] = {
    "sample": load_sample,
    "mednlp_chat": load_mednlp_chat,
    "kqa": load_kqa,
    "table": load_table,
}
"""Every data set that `data.name` may name."""


@dataclass(frozen=True, slots=True)
class LoadedPairs:
    """Pairs, and what a reader of their results should know of them.

    Attributes:
        pairs: The selected pairs, in file order.
        faults: Faults of the rows that were left out; empty unless they were asked to be dropped.
        facts: Plain data for the manifest: loader, language, label_definition, files (name, sha256, encoding, rows),
            pairs (in the files), selected, labels per domain (n, positive, negative, missing; of the selected pairs),
            dropped (file, row, column, reason) and notices.
    """

    pairs: list[QAPair]
    faults: tuple[Fault, ...]
    facts: dict[str, Any]


def load_pairs(settings: DataSettings, *, on_fault: Literal["raise", "drop"] = "raise") -> LoadedPairs:
    """Loads, checks and selects the pairs of a data set.

    Every row of the files is checked, also those that the selection leaves out. `ids` selects first, then `split`, then
    `limit`.

    Args:
        settings: Which data set, and which of its pairs.
        on_fault: `raise` refuses a file with a faulty row; `drop` leaves the faulty rows out and lists them.

    Raises:
        DeclarationError: The settings do not fit the data, or select nothing.
        DataError: A file cannot be read, or rows have faults; all of them are named.
    """
    if settings.name not in LOADERS:
        raise DeclarationError(
            f"data={settings.name}: holds no pairs of question and answer; those that do are {', '.join(LOADERS)}"
        )
    return _finish(LOADERS[settings.name](settings), settings, on_fault)


def pairs_from_dataset(
    dataset: Dataset, settings: DataSettings | None = None, *, on_fault: Literal["raise", "drop"] = "raise"
) -> LoadedPairs:
    """Makes pairs of a Hugging Face `Dataset` in memory, as `data=table` does of a file.

    Args:
        dataset: One row a pair; rows are counted from 1 in messages.
        settings: `columns`, `language` and the selection; the path is not used.
        on_fault: As in `load_pairs`.

    Raises:
        DeclarationError: The settings do not fit the data, or select nothing.
        DataError: Rows have faults.
    """
    settings = settings or DataSettings(name="table")
    table = table_from_records("dataset", list(enumerate(dataset.to_list(), start=1)), format="dataset")
    return _finish(load_from_tables([table], settings), settings, on_fault)


def _finish(loaded: Loaded, settings: DataSettings, on_fault: Literal["raise", "drop"]) -> LoadedPairs:
    faults = loaded.reading.faults
    if faults and on_fault == "raise":
        raise _refusal(loaded, settings)
    pairs = _select(loaded.pairs, settings)
    return LoadedPairs(pairs, tuple(found.fault for found in faults), _facts(loaded, pairs, settings))


def _refusal(loaded: Loaded, settings: DataSettings) -> DataError:
    found = sorted(loaded.reading.faults, key=lambda item: (item.table, item.fault.row or 0))
    names = {item.table for item in found}
    faults = [item.fault if len(names) == 1 else _with_file(item) for item in found]
    if any(table.facts.get("line_breaks") and table.from_spreadsheet for table in loaded.tables):
        first = faults[0]
        reason = f"{first.reason} (rows as a spreadsheet counts them: cells of this file hold line breaks)"
        faults[0] = Fault(first.row, first.field, reason)
    return DataError(names.pop() if len(names) == 1 else str(settings.path), faults)


def _with_file(item: RowFault) -> Fault:
    return Fault(item.fault.row, item.fault.field, f"{Path(item.table).name}: {item.fault.reason}")


def _select(pairs: list[QAPair], settings: DataSettings) -> list[QAPair]:
    chosen = select(pairs, settings)
    if not chosen:
        what = f"split {settings.split!r} of {len(pairs)} pair(s)" if settings.split and pairs else "the data"
        raise DeclarationError(f"data: {what} holds no usable pair")
    return chosen


def _facts(loaded: Loaded, pairs: list[QAPair], settings: DataSettings) -> dict[str, Any]:
    notices = [*loaded.reading.notices]
    for table in loaded.tables:
        notices += [f"{Path(table.name).name}: {notice}" for notice in table.notices]
    dropped = [
        {"file": Path(item.table).name, "row": item.fault.row, "column": item.fault.field, "reason": item.fault.reason}
        for item in loaded.reading.faults
    ]
    return {
        "loader": settings.name,
        "language": settings.language,
        "label_definition": loaded.label_definition,
        "files": [dict(table.facts) for table in loaded.tables],
        "pairs": len(loaded.pairs),
        "selected": len(pairs),
        "labels": {domain: label_counts(pairs, domain) for domain in DOMAINS},
        "dropped": dropped,
        "notices": notices,
    }
