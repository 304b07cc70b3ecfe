"""DSPy's response cache, asked by the library: was this reply stored, and let it be forgotten.

A refused, cut or unreadable reply that stays in the cache would be replayed on every later run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The place of one call's reply in `dspy.cache`.

    Attributes:
        key: Hash under which DSPy stores it.
    """

    key: str

    def exists(self) -> bool:
        """Tells whether the reply is stored already."""
        import dspy

        return self.key in dspy.cache

    def forget(self) -> None:
        """Drops the reply from memory and disk."""
        import dspy

        with dspy.cache._lock:
            dspy.cache.memory_cache.pop(self.key, None)
        if dspy.cache.enable_disk_cache:
            dspy.cache.disk_cache.delete(self.key)


def cache_entry(lm: Any, prompt: Any, messages: Any, settings: Mapping[str, Any], *, asynchronous: bool) -> Any | None:
    """Returns where DSPy stores the reply of a call, or None where it does not store it.

    Args:
        lm: The LM.
        prompt: A `dspy.lm15.Request`, or None.
        messages: Messages where there is no request.
        settings: Keyword arguments of the call.
        asynchronous: Whether the call is made with `acall`: DSPy keeps the two apart.
    """
    import dspy
    from dspy.clients.execution import IGNORED_CACHE_KEYS, prepare

    call = prepare(lm, prompt, messages, dict(settings), asynchronous=asynchronous)
    if not call.cache:
        return None
    try:
        return CacheEntry(dspy.cache.cache_key(call.key(lm, asynchronous), IGNORED_CACHE_KEYS))
    except (TypeError, ValueError) as error:  # such settings are not cached by DSPy either
        logger.debug("no cache key for %s: %s", lm.model, error)
        return None
