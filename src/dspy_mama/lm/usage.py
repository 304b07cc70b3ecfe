"""What calls cost: tokens, seconds and money, with unknown kept apart from zero."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


def _add(left: float | None, right: float | None) -> Any:
    return None if left is None or right is None else left + right


@dataclass(frozen=True, slots=True)
class CallUsage:
    """Sum over some LM calls.

    Attributes:
        calls: Requests that were answered, re-asks among them.
        prompt_tokens: Tokens sent; None = at least one call did not say.
        cached_tokens: Of these, tokens that the server took from its prefix cache; None = not said.
        completion_tokens: Tokens received; None = not said.
        seconds: Time spent waiting, summed over calls.
        cost: Money in US dollars; None = unknown, which is not 0.
        retries: Calls repeated after 429, 5xx or a lost connection.
        reasks: Calls made because a reply could not be read.
        cache_hits: Calls answered by DSPy's own cache; they cost nothing and their tokens are not counted.
    """

    calls: int = 0
    prompt_tokens: int | None = 0
    cached_tokens: int | None = 0
    completion_tokens: int | None = 0
    seconds: float = 0.0
    cost: float | None = 0.0
    retries: int = 0
    reasks: int = 0
    cache_hits: int = 0

    def __add__(self, other: CallUsage) -> CallUsage:
        """Returns the sum; unknown plus known is unknown."""
        return CallUsage(
            calls=self.calls + other.calls,
            prompt_tokens=_add(self.prompt_tokens, other.prompt_tokens),
            cached_tokens=_add(self.cached_tokens, other.cached_tokens),
            completion_tokens=_add(self.completion_tokens, other.completion_tokens),
            seconds=self.seconds + other.seconds,
            cost=_add(self.cost, other.cost),
            retries=self.retries + other.retries,
            reasks=self.reasks + other.reasks,
            cache_hits=self.cache_hits + other.cache_hits,
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures as plain data, as the record keeps them."""
        return {**asdict(self), "seconds": round(self.seconds, 4)}


def total(usages: Iterable[CallUsage]) -> CallUsage:
    """Returns the sum of several usages."""
    result = CallUsage()
    for usage in usages:
        result = result + usage
    return result
