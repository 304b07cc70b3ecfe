"""Ctrl-C and SIGTERM: the first asks a run to end well, the second ends it now."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts(first: Callable[[], None], second: Callable[[], None]) -> Iterator[None]:
    """Calls `first` at the first signal and `second` at each further one, while the block runs.

    Outside the main thread, and on event loops without signal support, signals keep their usual effect.

    Args:
        first: Stops taking new work.
        second: Cancels the work in flight.
    """
    count = 0

    def on_signal() -> None:
        nonlocal count
        count += 1
        (first if count == 1 else second)()

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    installed = [number for number in _SIGNALS if _install(number, on_signal)]
    try:
        yield
    finally:
        for number in installed:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, before[number] if before[number] is not None else signal.SIG_DFL)


def _install(number: signal.Signals, handler: Callable[[], None]) -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False
    try:
        asyncio.get_running_loop().add_signal_handler(number, handler)
    except (NotImplementedError, RuntimeError, ValueError):
        return False
    return True
