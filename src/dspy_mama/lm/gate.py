"""One door per LM: shared rate limit, shared pause after 429, retries with backoff and jitter."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

LONGEST_WAIT = 120.0
"""Seconds: a server that asks for more is not waited for; the call fails, and a later start of the run asks again."""


class CallFailedError(Exception):
    """A call that failed after its repeats.

    Attributes:
        error: The last attempt's error.
        repeats: How many repeats were made.
    """

    def __init__(self, error: Exception, repeats: int) -> None:
        """Keeps the error and the count."""
        super().__init__(str(error))
        self.error = error
        self.repeats = repeats


class _Slots:
    """A semaphore over all threads and event loops: a free slot goes to whoever has waited longest."""

    def __init__(self, width: int) -> None:
        self._free = width
        self._lock = threading.Lock()
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    async def __aenter__(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((turn.get_loop(), turn))
        try:
            await turn
        except asyncio.CancelledError:
            with self._lock:
                queued = [entry for entry in self._waiting if entry[1] is not turn]
                handed_on = len(queued) == len(self._waiting)
                self._waiting = deque(queued)
            if handed_on:  # the slot arrived while this call was being cancelled
                self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        with self._lock:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                try:
                    loop.call_soon_threadsafe(_grant, turn)
                except RuntimeError:  # that loop was closed with its calls unfinished
                    continue
                return
            self._free += 1


def _grant(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


def _asked(error: Any) -> float:
    """Returns the seconds that a server asks to wait, or -1 where it asks for none."""
    asked = getattr(error, "retry_after", None)
    return float(asked) if isinstance(asked, (int, float)) and asked >= 0 else -1.0


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
            max_concurrency: Calls in flight at most; None = no limit.
            retries: Repeats of a call that failed on 429, 5xx or a lost connection.
            backoff: Seconds before the first repeat; doubles each time, with jitter.
        """
        self._spacing = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._slots = _Slots(max_concurrency) if max_concurrency else None
        self.retries = retries
        self._backoff = backoff
        self._lock = threading.Lock()
        self._next_start = 0.0

    def __deepcopy__(self, memo: dict[int, Any]) -> Gate:
        """Returns itself: copies of an LM share its limits."""
        return self

    async def _turn(self) -> None:
        """Waits for this call's start: spaced by the rate limit, and after a pause that a server asked for."""
        while True:
            with self._lock:
                now = time.monotonic()
                wait = self._next_start - now
                if wait <= 0:
                    self._next_start = now + self._spacing
                    return
            # Looked at again after the wait: another call may have met a 429 meanwhile.
            await asyncio.sleep(wait)

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
            CallFailedError: The last attempt failed, or failed so that a repeat cannot help.
        """
        if self._slots is None:
            return await self._attempts(call)
        async with self._slots:
            return await self._attempts(call)

    async def _attempts(self, call: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        from dspy.utils.exceptions import LMRateLimitError, is_retryable_lm_error

        for attempt in range(self.retries + 1):
            await self._turn()
            try:
                return await call(), attempt
            except Exception as error:
                hopeless = not is_retryable_lm_error(error) or _asked(error) > LONGEST_WAIT
                if attempt == self.retries or hopeless:
                    raise CallFailedError(error, attempt) from error
                wait = self._wait(error, attempt)
                if isinstance(error, LMRateLimitError):
                    self.pause(wait)
                await asyncio.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _wait(self, error: Any, attempt: int) -> float:
        jitter = 1.0 + random.random() / 4  # only spreads waits; no result depends on it
        if (asked := _asked(error)) >= 0:
            return min(asked * jitter, LONGEST_WAIT)
        return min(self._backoff * 2.0**attempt * jitter, LONGEST_WAIT)
