"""Records with typed values (jsonl, json, parquet) to text cells, value by value."""

from __future__ import annotations

import datetime
import io
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from dspy_mama.core.errors import DataError, Fault


def text_of(value: Any) -> str:
    """Returns a value as a spreadsheet shows it: TRUE and FALSE, whole numbers without a point, "" for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def read_json_lines(text: str, name: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Returns line number and object per line; blank lines are skipped.

    Raises:
        DataError: Lines that are no JSON objects, all of them named.
    """
    records: list[tuple[int, Mapping[str, Any]]] = []
    faults = []
    # Not splitlines(): a JSON string may hold U+2028 and its like, which are no line ends here.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            value, fault = _object(line)
            if fault is None:
                records.append((number, value))
            else:
                faults.append(Fault(number, None, fault))
    if faults:
        raise DataError(name, faults)
    return records


def read_json(text: str, name: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Returns position (from 1) and object per entry of a JSON list.

    Raises:
        DataError: The file is no list of objects.
    """
    try:
        entries = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise DataError(name, [Fault(None, None, f"not JSON: {error}")]) from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(name, [Fault(None, None, "not a list of objects; write one object per pair, or use jsonl")])
    return list(enumerate(entries, start=1))


def read_parquet(data: bytes, name: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Returns position (from 1) and values per row of a parquet file.

    Raises:
        DataError: The file is no parquet file.
    """
    from pyarrow import ArrowException  # type: ignore[import-untyped]
    from pyarrow.parquet import read_table  # type: ignore[import-untyped]

    try:
        # Not datasets.load_dataset: it would leave a copy of the file in a cache folder.
        rows = read_table(io.BytesIO(data)).to_pylist()
    except (ArrowException, OSError, ValueError) as error:
        raise DataError(name, [Fault(None, None, f"not a readable parquet file ({error})")]) from None
    return list(enumerate(rows, start=1))


def _object(line: str) -> tuple[dict[str, Any], str | None]:
    try:
        value = json.loads(line, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        return {}, f"not JSON: {error}"
    return (value, None) if isinstance(value, dict) else ({}, 'not a JSON object such as {"id": ...}')


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in names if names.count(key) > 1)!r} is there twice")
    return fields


def columns_of(records: list[tuple[int, Mapping[str, Any]]]) -> list[str]:
    """Returns every key of the records, in the order in which they first appear."""
    return list(dict.fromkeys(_keys(records)))


def _keys(records: list[tuple[int, Mapping[str, Any]]]) -> Iterator[str]:
    for _, record in records:
        yield from record
