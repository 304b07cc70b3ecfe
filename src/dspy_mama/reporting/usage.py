"""Calls, tokens, seconds and cost per phase. An unknown amount is never 0: it is left out and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

PARTS: Final = ("routing", "initial", "verification", "consensus")
_COUNTED: Final = ("calls", "retries", "reasks", "cache_hits")
_MEASURED: Final = ("prompt_tokens", "cached_tokens", "completion_tokens", "seconds", "cost")

Usage = Mapping[str, Any]


def _made_calls(usage: Usage) -> bool:
    """A phase that asked nothing used nothing; its nulls are no unknown amounts."""
    return bool(usage.get("calls") or usage.get("cache_hits"))


def total_usage(usages: Sequence[Usage]) -> dict[str, Any]:
    """Adds up usage.

    Returns:
        Sums. A measure that nobody knows is None; where only some are known, the sum is a lower bound and `unknown`
        says how many are missing from it. `cached_share` is cached over prompt tokens, where both are known.
    """
    asked = [usage for usage in usages if _made_calls(usage)]
    out: dict[str, Any] = {name: sum(usage.get(name) or 0 for usage in usages) for name in _COUNTED}
    unknown = {}
    for name in _MEASURED:
        known = [usage[name] for usage in asked if usage.get(name) is not None]
        out[name] = sum(known) if known or not asked else None
        if len(known) < len(asked):
            unknown[name] = len(asked) - len(known)
    both = [u for u in asked if u.get("prompt_tokens") is not None and u.get("cached_tokens") is not None]
    prompt = sum(usage["prompt_tokens"] for usage in both)
    out["cached_share"] = sum(usage["cached_tokens"] for usage in both) / prompt if prompt else None
    return out | {"unknown": unknown}


def per_case(spent: Usage, n: int) -> dict[str, float | None]:
    """Returns what `total_usage` sums, per case; None where it is not known, or without a case."""
    measures = ("calls", "prompt_tokens", "completion_tokens", "cost", "seconds")
    return {name: None if spent[name] is None or not n else spent[name] / n for name in measures}


def usage_by_phase(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns `total_usage` for routing and each phase that used anything, and for all together under `total`."""
    used = {
        part: [record["usage"][part] for record in records if (record.get("usage") or {}).get(part)] for part in PARTS
    }
    out = {part: total_usage(usages) for part, usages in used.items() if usages}
    return out | {"total": total_usage([usage for usages in used.values() for usage in usages])}
