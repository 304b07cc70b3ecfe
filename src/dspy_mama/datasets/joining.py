"""Rows to pairs: rows of several files are joined by id; what is missing, doubled or contradictory is a fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.cases import DOMAINS, Domain, QAPair
from dspy_mama.datasets.rows import Reading, Row

_EMPTY: Final = "empty; every pair needs a question and an answer"


def join_rows(reading: Reading, source: str) -> list[QAPair]:
    """Joins rows by id and returns the complete pairs; what is missing, doubled or contradictory becomes a fault.

    Args:
        reading: All rows of all files; receives the faults.
        source: Name of the data set.
    """
    by_id: dict[str, list[Row]] = {}
    for row in reading.rows:
        by_id.setdefault(row.id, []).append(row)
    pairs = (_join(rows, source, reading) for rows in by_id.values())
    return [pair for pair in pairs if pair is not None]


def _join(rows: Sequence[Row], source: str, reading: Reading) -> QAPair | None:
    first, before = rows[0], len(reading.faults)
    _check_doubles(rows, reading)
    question = _agreed((row.question for row in rows), rows, "question", reading)
    answer = _agreed((row.answer for row in rows), rows, "answer", reading)
    for name, text in (("question", question), ("answer", answer)):
        if not text:
            asked = next((row for row in rows if getattr(row.columns, name)), first)
            column = getattr(asked.columns, name) or name
            hint = _EMPTY if getattr(asked.columns, name) else f"no text for the id {first.id!r} in any file; {_EMPTY}"
            reading.add_fault((asked.table, asked.number), column, hint)
    gold: dict[Domain, bool] = {}
    notes: dict[Domain, str] = {}
    extra: dict[str, Any] = {}
    for row in rows:
        for domain, label in row.gold.items():
            if gold.setdefault(domain, label) != label:
                reading.add_fault((row.table, row.number), row.columns.labels[domain], _contradiction(first))
        notes = {**row.notes, **notes}
        extra = {**row.extra, **extra}
    if len(reading.faults) > before:
        return None
    language = next((row.language for row in rows if row.question), first.language)
    labels = {domain: gold.get(domain) for domain in DOMAINS}
    return QAPair(first.id, question, answer, language, labels, notes, source, extra)


def _check_doubles(rows: Sequence[Row], reading: Reading) -> None:
    seen: dict[str, int] = {}
    for row in rows:
        other = seen.setdefault(row.table, row.number)
        if other != row.number:
            reason = f"the id {row.id!r} is in row {other} too; ids must be unique"
            reading.add_fault((row.table, row.number), row.columns.id, reason)


def _agreed(texts: Iterable[str], rows: Sequence[Row], name: str, reading: Reading) -> str:
    chosen, origin = "", rows[0]
    for row, text in zip(rows, texts, strict=True):
        if not text or text.strip() == chosen.strip():
            continue
        if not chosen:
            chosen, origin = text, row
        elif row.table != origin.table:
            reading.add_fault((row.table, row.number), getattr(row.columns, name), _contradiction(origin))
    return chosen


def _contradiction(other: Row) -> str:
    return f"says something else than {Path(other.table).name}, row {other.number}, for the id {other.id!r}"


def label_counts(pairs: Iterable[QAPair], domain: Domain) -> dict[str, int]:
    """Returns how many pairs have a label in a domain, and which: `n`, `positive`, `negative`, `missing`."""
    counts = Counter(pair.gold.get(domain) for pair in pairs)
    positive, negative = counts[True], counts[False]
    return {"n": positive + negative, "positive": positive, "negative": negative, "missing": counts[None]}
