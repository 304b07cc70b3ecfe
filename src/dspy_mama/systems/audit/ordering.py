"""Prompt order: what a prompt lists may be listed in another order, decided by a seed (paper A, Limitations)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from dspy_mama.core.ids import content_hash

T = TypeVar("T")


def ordered(items: Sequence[T], seed: int | None, *about: str) -> tuple[T, ...]:
    """Returns the items in an order that depends on the seed and on what they are listed for, and on nothing else.

    Args:
        items: What a prompt lists.
        seed: Which order; None = as they are.
        about: What the list belongs to, such as the domain and the pair, so that each has an order of its own.
    """
    if seed is None:
        return tuple(items)
    places = sorted(range(len(items)), key=lambda place: content_hash("\n".join((str(seed), str(place), *about))))
    return tuple(items[place] for place in places)
