"""Mended answers as a file that people open, and the sheet on which they rate what the evaluators judged."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.predictions import replace_file, safe_cell, write_predictions
from dspy_mama.reporting.refinement_view import STATE_WORDS, status_of
from dspy_mama.scoring.refinement_records import known_score, needs_review, refined_item

Record = Mapping[str, Any]

SHEET_COLUMNS: Final = ("id", "version", "question", "text", "ama", "sra", "rater", "comment")
"""Columns of the sheet for raters; the scores of evaluators are not on it, lest they sway the rater."""


def mended_row(record: Record) -> dict[str, Any]:
    """Returns what is worth handing on of a record: the text, whether it was accepted, and its scores."""
    item = refined_item(record)
    final = record.get("final") or {}
    versions = record.get("versions") or []
    last: Mapping[str, Any] = next((own for own in versions if own["number"] == final.get("version")), {})
    first: Mapping[str, Any] = versions[0] if versions else {}
    return {
        "id": record["id"],
        "source": record.get("source"),
        "language": record.get("language"),
        "repeat": record.get("repeat", 0),
        "principle": record.get("principle"),
        "question": record.get("question"),
        "answer": last.get("text"),
        "first_answer": first.get("text"),
        "status": status_of(record),
        "accepted": final.get("accepted"),
        "needs_review": needs_review(record),
        "iterations": item.iterations,
        "ama_before": known_score(first, "ama"),
        "sra_before": known_score(first, "sra"),
        "ama_after": known_score(last, "ama"),
        "sra_after": known_score(last, "sra"),
        "flags": [name for name in STATE_WORDS if (record.get("end_states") or {}).get(name)],
    }


def write_mended(records: Iterable[Record], target: Path) -> Path:
    """Writes mended answers as .jsonl or .csv; the file appears complete or not at all.

    Raises:
        DeclarationError: The ending is another, or the file cannot be written.
    """
    rows = [mended_row(record) for record in records]
    if target.suffix.lower() != ".csv":
        return write_predictions(rows, target)
    flat = [{**row, "flags": " ".join(row["flags"])} for row in rows]
    return _write_csv(flat, list(flat[0]) if flat else ["id"], target)


def write_rating_sheet(records: Iterable[Record], target: Path) -> int:
    """Writes a row for every assessed version, for people to rate (read back by `read_safety_ratings`).

    Args:
        records: Rows of `records.jsonl`, with their texts.
        target: A .csv file that does not exist yet: it may hold ratings.

    Returns:
        How many versions there are to rate.

    Raises:
        DeclarationError: The ending is another, the file exists, or there is no text to rate.
    """
    if target.suffix.lower() != ".csv":
        raise DeclarationError(f"--sheet {target}: a sheet for ratings is a .csv file")
    if target.exists():
        raise DeclarationError(f"--sheet {target}: exists already and may hold ratings; name another file")
    rows = [
        {"id": record["id"], "version": version["number"], "question": record.get("question"), "text": version["text"]}
        for record in records
        for version in record.get("versions") or ()
        if version.get("text") is not None and version.get("assessments")
    ]
    if not rows:
        raise DeclarationError("this run holds no assessed text to rate; run with tracking.store_text=true")
    _write_csv(rows, list(SHEET_COLUMNS), target)
    return len(rows)


def _write_csv(rows: Sequence[Mapping[str, Any]], columns: list[str], target: Path) -> Path:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, columns, restval="")
    writer.writeheader()
    writer.writerows({name: safe_cell(value) for name, value in row.items()} for row in rows)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, stream.getvalue().encode("utf-8-sig", "replace"))
    except OSError as error:
        raise DeclarationError(f"{target}: cannot be written ({error.strerror or error})") from None
    return target
