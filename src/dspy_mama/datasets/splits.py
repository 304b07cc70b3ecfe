"""Splits by hash of the id: a pair stays in its split whatever the order or number of rows."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError

SHARES: Final[Mapping[str, float]] = MappingProxyType({"train": 0.6, "dev": 0.2, "test": 0.2})
"""Default shares of the three splits."""


def split_of(id: str, seed: int = 0, shares: Mapping[str, float] = SHARES) -> str:
    """Returns the split of an id; the same on every machine, whatever other ids there are.

    Args:
        id: The pair's id (or its cluster's, so that a question's answers stay together).
        seed: Another seed, another split.
        shares: Share per split, each in [0, 1], 1 in sum. Their order does not matter.

    Raises:
        DeclarationError: The shares are negative or do not sum to 1.
    """
    if any(share < 0 for share in shares.values()) or not math.isclose(sum(shares.values()), 1.0, abs_tol=1e-9):
        raise DeclarationError(f"shares: {dict(shares)} must be at least 0 each and 1 in sum")
    digest = hashlib.sha256(f"{seed}:{id}".encode("utf-8", "surrogatepass")).digest()
    point, edge = int.from_bytes(digest[:8], "big") / 2**64, 0.0
    names = sorted(name for name in shares if shares[name] > 0)
    for name in names:
        edge += shares[name]
        if point < edge:
            return name
    return names[-1]


def split_pairs(
    pairs: Iterable[QAPair],
    seed: int = 0,
    shares: Mapping[str, float] = SHARES,
    cluster: Callable[[QAPair], str] = lambda pair: pair.id,
) -> dict[str, list[QAPair]]:
    """Returns the pairs per split, in their order; every split is there, also an empty one.

    Args:
        pairs: Pairs with unique ids.
        seed: Another seed, another split.
        shares: Share per split.
        cluster: What must not be torn apart, such as `lambda pair: pair.question` for several answers to one question.

    Raises:
        DeclarationError: The shares are negative or do not sum to 1.
    """
    splits: dict[str, list[QAPair]] = {name: [] for name in shares}
    for pair in pairs:
        splits[split_of(cluster(pair), seed, shares)].append(pair)
    return splits
