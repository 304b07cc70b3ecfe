"""Records to a file that people open: jsonl as they are, csv flat and safe for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.cases import DOMAINS, PHASES
from dspy_mama.core.errors import DeclarationError

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Full-width signs start formulas too in Japanese spreadsheets."""


def write_predictions(records: Iterable[Mapping[str, Any]], path: str | Path) -> Path:
    """Writes records as jsonl (whole) or csv (one row a record); the file appears complete or not at all.

    In csv, text that a spreadsheet would run as a formula gets a leading apostrophe. The csv is UTF-8 with a byte order
    mark, which Excel needs; numbers that are not known are blank there and null in jsonl.

    Args:
        records: Records as a run keeps them.
        path: Target; the ending says which format. Missing folders are made.

    Returns:
        The path.

    Raises:
        DeclarationError: The ending is neither .jsonl nor .csv, or the file cannot be written.
    """
    target = Path(path).expanduser()
    writers = {".jsonl": _json_lines, ".csv": _csv}
    if target.suffix.lower() not in writers or target.is_dir():
        raise DeclarationError(f"{target}: predictions are written to a .jsonl or .csv file")
    data = writers[target.suffix.lower()](list(records))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, data)
    except OSError as error:
        raise DeclarationError(f"{target}: cannot be written ({error.strerror or error})") from None
    return target


def replace_file(target: Path, data: bytes) -> None:
    """Writes a file that appears complete or not at all.

    Raises:
        OSError: It cannot be written.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _json_lines(records: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(_json_line(_finite(record)) + b"\n" for record in records)


def _json_line(record: Any) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8, but an escape.
        return json.dumps(record, allow_nan=False).encode("ascii")


def _finite(value: Any) -> Any:
    """Returns the value with None for NaN and infinities, which JSON has not."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _csv(records: Sequence[Mapping[str, Any]]) -> bytes:
    rows = [_flat(record) for record in records]
    columns = list(dict.fromkeys(column for row in rows for column in row)) or ["id"]
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, columns, restval="")
    writer.writeheader()
    writer.writerows({column: safe_cell(value) for column, value in row.items()} for row in rows)
    return stream.getvalue().encode("utf-8-sig", "replace")


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {
        name: record.get(name) for name in ("id", "source", "language", "repeat", "question", "answer")
    }
    row["specialty"] = (record.get("routing") or {}).get("specialty")
    row |= {"final_phase": record.get("final_phase"), "needs_review": record.get("needs_review")}
    phases = record.get("phases") or {}
    for domain in DOMAINS:
        final = (phases.get(record.get("final_phase")) or {}).get(domain) or {}
        row[f"{domain}_verdict"] = (record.get("verdicts") or {}).get(domain)
        row[f"{domain}_gold"] = (record.get("gold") or {}).get(domain)
        row |= {f"{domain}_{name}": final.get(name) for name in ("outcome", "probability", "reason", "error")}
        for phase in PHASES:
            if phase in phases:
                row[f"{domain}_{phase}_risk"] = (phases[phase].get(domain) or {}).get("risk")
        cited = ((phases.get("verification") or {}).get(domain) or {}).get("citations") or ()
        row[f"{domain}_citations"] = " ".join(map(str, cited))
    return row


def safe_cell(value: Any) -> str:
    """Returns a value as the text of a spreadsheet's cell; what it would run as a formula gets an apostrophe."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if not isinstance(value, str):
        return str(value)
    text = value.replace("\0", "")
    starts = text.startswith(("\t", "\r")) or text.lstrip().startswith(_FORMULA_STARTS)
    return f"'{text}" if starts else text
