"""Which of a data set's items a run takes: by id, by split, and at most so many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.splits import SHARES, split_of
from dspy_mama.settings import DataSettings


class Identified(Protocol):
    """An item with an id of its own."""

    @property
    def id(self) -> Any:
        """Unique within its data set."""


Item = TypeVar("Item", bound=Identified)


def select(items: Sequence[Item], settings: DataSettings, *, by_split: bool = True) -> list[Item]:
    """Returns the items that the settings choose; `ids` selects first, then `split`, then `limit`.

    Args:
        items: All of them, in file order.
        settings: `ids`, `split` and `limit` are read.
        by_split: Whether `split` means a hash of the id; else it is a split of the data set's own, chosen before.

    Raises:
        DeclarationError: An id is not in the data, or there is no such split.
    """
    if unknown := sorted(set(settings.ids) - {item.id for item in items}):
        shown = ", ".join(unknown[:10])
        raise DeclarationError(
            f"data.ids: not in the data: {shown}; its ids are such as {', '.join(item.id for item in items[:3])}"
        )
    chosen = [item for item in items if not settings.ids or item.id in settings.ids]
    if by_split and settings.split is not None:
        if settings.split not in SHARES:
            raise DeclarationError(f"data.split: {settings.split!r} is none of {', '.join(SHARES)}")
        chosen = [item for item in chosen if split_of(item.id) == settings.split]
    return chosen[: settings.limit]
