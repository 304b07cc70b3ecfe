"""Words of messages."""

from __future__ import annotations


def plural(noun: str, count: int = 2) -> str:
    """Returns a noun of English as it stands after a number: `pair` after 1, else `pairs`, `diagnoses`."""
    if count == 1:
        return noun
    return f"{noun[:-2]}es" if noun.endswith("is") else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """Returns a number with its noun: `1 pair`, `1,200 pairs`."""
    return f"{count:,} {plural(noun, count)}"
