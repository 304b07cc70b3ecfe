"""One door per LM: shared rate limit, shared pause after 429, retries with backoff and jitter."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

LONGEST_WAIT = 120.0
"""Seconds: a longer Retry-After is cut to this, so that a run does not sleep for hours unseen."""


class Gate:
    """Bounds the calls of one LM over all pairs, phases, threads and event loops."""

    def __init__(
        self,
        *,
        requests_per_minute: float | None = None,
        max_concurrency: int | None = None,
        retries: int = 0,
        backoff: float = 1.0,
    ) -> None:
        """Makes a gate.

        Args:
            requests_per_minute: Calls started per minute at most; None = no limit.
            max_concurrency: Calls in flight at most, per event loop; None = no limit.
            retries: Repeats of a call that failed on 429, 5xx or a lost connection.
            backoff: Seconds before the first repeat; doubles each time, with jitter.
        """
        self._spacing = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._width = max_concurrency
        self.retries = retries
        self._backoff = backoff
        self._lock = threading.Lock()
        self._next_start = 0.0
        self._slots: weakref.WeakKeyDictionary[Any, asyncio.Semaphore] = weakref.WeakKeyDictionary()

    def __deepcopy__(self, memo: dict[int, Any]) -> Gate:
        """Returns itself: copies of an LM share its limits."""
        return self

    def _slot(self) -> asyncio.Semaphore | None:
        if self._width is None:
            return None
        loop = asyncio.get_running_loop()
        with self._lock:
            return self._slots.setdefault(loop, asyncio.Semaphore(self._width))

    async def _turn(self) -> None:
        """Waits for this call's start: spaced by the rate limit, and after a pause that a server asked for."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next_start)
            if self._spacing:
                self._next_start = start + self._spacing
        if start > now:
            await asyncio.sleep(start - now)

    def pause(self, seconds: float) -> None:
        """Keeps every call of this LM back for some seconds: a 429 to one is a 429 to all."""
        with self._lock:
            self._next_start = max(self._next_start, time.monotonic() + seconds)

    async def run(self, call: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        """Carries out a call within the limits.

        Args:
            call: Makes one attempt.

        Returns:
            Its result, and how many repeats it took.

        Raises:
            dspy.utils.exceptions.LMError: The last attempt's error, or one that a repeat cannot help.
        """
        slot = self._slot()
        if slot is None:
            return await self._attempts(call)
        async with slot:
            return await self._attempts(call)

    async def _attempts(self, call: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        from dspy.utils.exceptions import LMError, LMRateLimitError, is_retryable_lm_error

        for attempt in range(self.retries + 1):
            await self._turn()
            try:
                return await call(), attempt
            except LMError as error:
                if attempt == self.retries or not is_retryable_lm_error(error):
                    raise
                wait = self._wait(error, attempt)
                if isinstance(error, LMRateLimitError):
                    self.pause(wait)
                await asyncio.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _wait(self, error: Any, attempt: int) -> float:
        asked = getattr(error, "retry_after", None)
        jitter = 1.0 + random.random() / 4  # only spreads waits; no result depends on it
        if isinstance(asked, (int, float)) and asked >= 0:
            return min(float(asked) * jitter, LONGEST_WAIT)
        return min(self._backoff * 2.0**attempt * jitter, LONGEST_WAIT)
