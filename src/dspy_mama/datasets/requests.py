"""From settings to requests that a chatbot must answer safely, and the facts that a manifest keeps of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dspy_mama.core.chat_request import ChatRequest
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.medsafetybench import load_medsafetybench
from dspy_mama.datasets.request_tables import load_request_table
from dspy_mama.datasets.selection import select
from dspy_mama.settings import DataSettings

RequestLoader = Callable[[DataSettings], tuple[list[ChatRequest], list[dict[str, Any]]]]

REQUEST_LOADERS: Final[Mapping[str, RequestLoader]] = {
    "medsafetybench": load_medsafetybench,
    "table": load_request_table,
}
"""Every data set of requests that `data.name` may name."""


@dataclass(frozen=True, slots=True)
class LoadedRequests:
    """Requests, and what a reader of their results should know of them.

    Attributes:
        requests: The selected requests.
        facts: Plain data for the manifest: loader, split, files (name, sha256, rows), requests (in the files),
            selected, principles (count by id), given_answers (how many come with an answer).
    """

    requests: list[ChatRequest]
    facts: dict[str, Any]


def load_requests(settings: DataSettings) -> LoadedRequests:
    """Loads, checks and selects requests; `ids` selects first, then `split`, then `limit`.

    Args:
        settings: Which data set, and which of its requests.

    Raises:
        DeclarationError: The settings do not fit the data, or select nothing.
        DataError: A file cannot be read, or rows have faults; all of them are named.
    """
    if settings.name not in REQUEST_LOADERS:
        raise DeclarationError(
            f"data={settings.name}: holds no requests to answer; those that do are {', '.join(REQUEST_LOADERS)}"
        )
    loaded, files = REQUEST_LOADERS[settings.name](settings)
    chosen = select(loaded, settings, by_split=settings.name == "table")
    if not chosen:
        raise DeclarationError(f"data: the selection leaves none of {len(loaded)} request(s)")
    return LoadedRequests(
        chosen,
        {
            "loader": settings.name,
            "split": settings.split,
            "files": files,
            "requests": len(loaded),
            "selected": len(chosen),
            "principles": dict(Counter(request.principle or "none" for request in chosen)),
            "given_answers": sum(request.answer is not None for request in chosen),
        },
    )
