"""One record a line: how lines are written, read back after a crash, and what a record's outcome is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.tracking.scrub import scrub

Record = dict[str, Any]

# JSON may hold these as they are, but readers that split lines the Unicode way would break a record in two.
_LINE_ENDS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "\u0085\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class RecordFile:
    """What a `records.jsonl` holds.

    Attributes:
        records: One record a key, the last one written, in the order in which they were written.
        torn: Unfinished lines at the end that were left out (0 or 1).
        superseded: Earlier records of a key that has a later one.
    """

    records: tuple[Record, ...]
    torn: int
    superseded: int


def to_line(record: Mapping[str, Any]) -> bytes:
    """Returns a record as one line of UTF-8, without secrets; lone surrogates become `?`."""
    text = json.dumps(scrub(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_LINE_ENDS).encode("utf-8", "replace") + b"\n"


def read_records(path: Path) -> RecordFile:
    """Reads a record file; what a killed process left half-written at its end is dropped and counted.

    Args:
        path: The file; one that does not exist holds no record.

    Raises:
        DataError: A line before the last is not a record.
    """
    kept: dict[str, Record] = {}
    torn = superseded = 0
    for record in iter_records(path):
        if record is None:
            torn += 1
        else:
            superseded += int(kept.pop(record["key"], None) is not None)
            kept[record["key"]] = record
    return RecordFile(tuple(kept.values()), torn, superseded)


def iter_records(path: Path) -> Iterator[Record | None]:
    """Yields each record of a file as it was written, and None for an unfinished last line.

    Raises:
        DataError: A line before the last is not a record.
    """
    if not path.exists():
        return
    fault: Fault | None = None
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            if fault is not None:  # a faulty line is forgiven only at the end of the file
                raise DataError(str(path), [fault])
            record = _parse(line)
            if record is None:
                reason = "not a whole record; remove the line and run again: its pair is then audited again"
                fault = Fault(number, None, reason)
            else:
                yield record
    if fault is not None:
        yield None


def _parse(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:  # also UnicodeDecodeError
        return None
    return record if isinstance(record, dict) and isinstance(record.get("key"), str) else None


def in_data_order(records: Iterable[Record]) -> tuple[Record, ...]:
    """Returns records repeat by repeat in the order of the data, by their `position`; a file keeps them as finished.

    Records without a position (made by hand, or elsewhere) keep their order, after the others of their repeat.
    """

    def place(record: Record) -> tuple[int, float]:
        position = record.get("position")
        return int(record.get("repeat") or 0), float("inf") if position is None else float(position)

    return tuple(sorted(records, key=place))


def repair_tail(path: Path) -> int:
    """Cuts an unfinished last line off, so that the next record starts a line of its own.

    A whole record that only lacks its line end is kept.

    Returns:
        Number of lines cut off (0 or 1).

    Raises:
        OSError: The file cannot be changed.
    """
    if not path.exists():
        return 0
    with path.open("r+b") as stream:
        end, start = stream.seek(0, os.SEEK_END), 0
        tail = b""
        # Whole lines may follow one another in the last block; only the last non-blank one can be torn.
        while end and not tail.strip():
            start = _line_start(stream, end)
            stream.seek(start)
            tail = stream.read(end - start)
            end = start if not tail.strip() else end
        if not tail.strip():
            return 0
        if _parse(tail) is None:
            stream.truncate(start)
            return 1
        if not tail.endswith(b"\n"):
            stream.seek(0, os.SEEK_END)
            stream.write(b"\n")
    return 0


def _line_start(stream: Any, end: int) -> int:
    """Returns where the line that ends at `end` (its line end included) begins."""
    position, block = end - 1, 1 << 16
    while position > 0:
        low = max(0, position - block)
        stream.seek(low)
        found = stream.read(position - low).rfind(b"\n")
        if found >= 0:
            return low + int(found) + 1
        position = low
    return 0


def final_outcomes(record: Mapping[str, Any]) -> dict[str, str]:
    """Returns the outcome of each thing that a record must say: `scored`, or why it is not.

    For an audit these are the domains' final verdicts; records of other systems state theirs under `outcomes`.

    Raises:
        DeclarationError: The record does not have the shape of a record.
    """
    if isinstance(stated := record.get("outcomes"), Mapping) and stated:
        return {str(unit): str(outcome) for unit, outcome in stated.items()}
    try:
        verdicts = record["phases"][record["final_phase"]]
        return {domain: str(verdict["outcome"]) for domain, verdict in verdicts.items()}
    except (KeyError, TypeError, AttributeError) as error:
        where = record.get("id", record.get("key"))
        raise DeclarationError(f"record {where!r} has no verdicts of a final phase ({error!r} is missing)") from None


def is_finished(record: Mapping[str, Any]) -> bool:
    """Tells whether an item need not be done again.

    It must be where every final outcome failed on infrastructure, or where the record names under `retry` parts that
    did, beside its outcomes.
    """
    return not record.get("retry") and any(outcome != "infra" for outcome in final_outcomes(record).values())
