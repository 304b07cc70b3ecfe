"""The two families of errors: what a retry cannot help, and what concerns one example only."""

from __future__ import annotations

from dataclasses import dataclass

from dspy_mama.core.wording import plural


class MamaError(Exception):
    """Base of every error this library raises on purpose."""


class DeclarationError(MamaError):
    """A wrong setting, file or argument; raised before the first token is spent, a retry cannot help."""


class ExecutionError(MamaError):
    """One example could not be carried out; it is recorded and the run goes on."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault in a data file.

    Attributes:
        row: 1-based row as a spreadsheet shows it (the header is row 1), or None for the whole file.
        field: Column name, or None where the fault is not about one column.
        reason: What is wrong, in words that say what to do.
    """

    row: int | None
    field: str | None
    reason: str

    def __str__(self) -> str:
        """Returns the fault as one line."""
        where = [f"row {self.row}"] if self.row is not None else []
        if self.field is not None:
            where.append(f"column {self.field!r}")
        return f"{', '.join(where)}: {self.reason}" if where else self.reason


class DataError(DeclarationError):
    """A data file that cannot be read as asked.

    Attributes:
        path: The file at fault.
        faults: Every fault found, in row order.
    """

    def __init__(self, path: str, faults: list[Fault] | tuple[Fault, ...]) -> None:
        """Builds the message: one line for one fault, else a line for each of the first ten."""
        self.path = str(path)
        self.faults = tuple(faults)
        if len(self.faults) == 1:
            super().__init__(f"{self.path}: {self.faults[0]}")
            return
        shown = "\n".join(f"  {fault}" for fault in self.faults[:10])
        more = len(self.faults) - 10
        tail = f"\n  ... and {more} more" if more > 0 else ""
        super().__init__(f"{self.path}: {len(self.faults)} {plural('fault', len(self.faults))}\n{shown}{tail}")


class IndexStateError(DeclarationError):
    """The index on disk does not fit what is asked of it; the message names the command that repairs."""
