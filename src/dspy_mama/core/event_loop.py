"""Calls async code from sync code: one background event loop a process, so that connections are reused."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_pid = 0


def _background() -> asyncio.AbstractEventLoop:
    global _loop, _thread, _pid
    with _lock:
        # After a fork the child has the object but not the thread that drives it.
        if _loop is None or _pid != os.getpid() or _thread is None or not _thread.is_alive():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="dspy_mama-loop", daemon=True)
            thread.start()
            _loop, _thread, _pid = loop, thread, os.getpid()
        return _loop


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end from sync code and returns its result.

    The caller's context variables (DSPy's settings, LM and trace among them) go with it. Works in any thread, with
    or without a running event loop. An interrupt cancels the coroutine.

    Args:
        coroutine: What to run.

    Returns:
        Its result.
    """
    loop = _background()
    context = contextvars.copy_context()
    if threading.current_thread() is _thread:
        # Called from code that this loop itself is running: a second loop, in a thread of its own.
        return _run_apart(coroutine, context)
    done: Future[T] = Future()
    task: list[asyncio.Task[T]] = []

    def start() -> None:
        task.append(loop.create_task(coroutine, context=context))
        task[0].add_done_callback(lambda finished: _hand_over(finished, done))

    loop.call_soon_threadsafe(start, context=context)
    try:
        return done.result()
    except BaseException:
        if not done.done():
            loop.call_soon_threadsafe(lambda: task and task[0].cancel())
        raise


def _hand_over(task: asyncio.Task[T], done: Future[T]) -> None:
    if done.cancelled():
        return
    if task.cancelled():
        done.cancel()
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())


def _run_apart(coroutine: Coroutine[Any, Any, T], context: contextvars.Context) -> T:
    result: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result.append(context.run(asyncio.run, coroutine))
        except BaseException as error:  # noqa: BLE001 - handed to the caller as it is
            failure.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
