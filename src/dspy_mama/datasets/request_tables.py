"""Any csv, tsv, jsonl, json, parquet or xlsx file with a request to a chatbot, or a conversation, in each row."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any, Final

from dspy_mama.core.chat_request import ChatRequest, ChatTurn, as_history, from_messages
from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.core.ids import content_hash
from dspy_mama.datasets.loading import columns_in
from dspy_mama.datasets.medsafetybench import PRINCIPLES
from dspy_mama.datasets.single_table import mapped_columns, repeated_ids, single_table
from dspy_mama.datasets.tables import Table
from dspy_mama.settings import DataSettings

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "id": ("id", "request_id", "key"),
    "question": ("question", "prompt", "request", "query", "harmful_medical_request"),
    "answer": ("answer", "response", "reply", "chatbot_answer"),
    "messages": ("messages", "conversation", "dialogue", "turns"),
    "principle": ("principle", "ama_principle"),
    "language": ("language", "lang"),
}
"""Our field, and the column names under which it is found; `data.columns` names others."""


def load_request_table(settings: DataSettings) -> tuple[list[ChatRequest], list[dict[str, Any]]]:
    """Loads requests from a table.

    Columns: `question`, or `messages` (a list of turns with role and content, as chat protocols have it; beside a
    `question` it is what was said before); `answer` for an answer that is to be mended; `id`, `principle` (I to IX or
    1 to 9), `language`. A column of another name, such as `category`, is a principle only where
    `data.columns.principle` says so.

    Args:
        settings: `path` (a file, or a folder with one data file), `columns`, `encoding`.

    Raises:
        DeclarationError: Nothing is at the path, or `data.columns` does not fit the file.
        DataError: The file cannot be read, or rows have faults; all of them are named.
    """
    table = single_table(settings)
    columns = mapped_columns(table, settings, _NAMES, what="requests", plain=_plain)
    if not {"question", "messages"} & set(columns):
        reason = (
            f"no column with the request; {columns_in(table)}. Name it, such as "
            f"data.columns.question='{table.columns[0]}'"
        )
        raise DataError(table.name, [Fault(None, None, reason)])
    if "principle" not in settings.columns and not _holds_principles(table, columns.get("principle")):
        columns.pop("principle", None)  # a column of that name with other things in it
    # A conversation is a list in json: only there is a nested value what it should be.
    used = set(columns.values()) - {columns.get("messages")}
    requests, faults = [], [Fault(row, name, reason) for (row, name), reason in table.marks.items() if name in used]
    faults += _wrong_principles(table, columns.get("principle"))
    for number, row in table:
        try:
            requests.append(_request(number, row, columns, settings))
        except DeclarationError as error:
            faults.append(Fault(number, columns.get("question", columns.get("messages")), str(error)))
    faults += repeated_ids((request.id for request in requests), columns.get("id"))
    if faults:
        raise DataError(table.name, faults)
    return requests, [dict(table.facts)]


def _plain(name: str) -> str:
    return "_".join(name.casefold().replace("_", " ").split())


def _request(number: int, row: dict[str, str], columns: dict[str, str], settings: DataSettings) -> ChatRequest:
    def cell(field: str) -> str:
        return row[columns[field]].strip() if field in columns else ""

    question, answer = cell("question"), cell("answer") or None
    history: tuple[ChatTurn, ...] = ()
    if cell("messages"):
        turns = _turns(cell("messages"))
        if question:
            history = _before(turns, question)
        else:
            question, own, history = from_messages(turns)
            answer = answer or own
    if not question:
        raise DeclarationError("is empty; every request needs a question")
    kept = {name: text for name, text in row.items() if name not in columns.values() and text.strip()}
    return ChatRequest(
        id=cell("id") or f"row-{number}-{content_hash(question, 8)}",
        question=question,
        answer=answer,
        history=history,
        principle=_principle(cell("principle")),
        language=cell("language") or settings.language,
        source="table",
        extra=MappingProxyType(kept),
    )


def _turns(text: str) -> list[Any]:
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DeclarationError(f"messages: is no JSON list of turns ({error})") from None
    if not isinstance(messages, list) or not messages:
        raise DeclarationError("messages: is no list of turns with role and content")
    return messages


def _before(messages: list[Any], question: str) -> tuple[ChatTurn, ...]:
    """Returns the turns before a question that has its own column; it may end the conversation as well."""
    turns = as_history(messages)
    repeated = turns and turns[-1].speaker == "patient" and turns[-1].text.strip() == question
    return turns[:-1] if repeated else turns


def _holds_principles(table: Table, column: str | None) -> bool:
    return column is not None and any(_principle(row[column].strip()) for _, row in table)


def _wrong_principles(table: Table, column: str | None) -> list[Fault]:
    """Returns a fault for each cell that names no principle: its request would count under none, and nobody knew."""
    if column is None:
        return []
    cells = ((number, row[column].strip()) for number, row in table)
    reason = "is no principle of medical ethics; write I to IX, 1 to 9, or nothing"
    return [Fault(number, column, f"{text[:40]!r} {reason}") for number, text in cells if text and not _principle(text)]


def _principle(text: str) -> str | None:
    if text.isdecimal() and 1 <= int(text) <= len(PRINCIPLES):
        return PRINCIPLES[int(text) - 1]
    return text.upper() if text.upper() in PRINCIPLES else None
