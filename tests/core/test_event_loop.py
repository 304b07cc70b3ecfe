import asyncio
import contextvars
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from dspy_mama.core import event_loop
from dspy_mama.core.event_loop import run_sync

name = contextvars.ContextVar("name", default="nobody")


async def who():
    await asyncio.sleep(0)
    return name.get()


def test_the_callers_context_goes_with_the_coroutine():
    token = name.set("caller")
    try:
        assert run_sync(who()) == "caller"
    finally:
        name.reset(token)
    assert run_sync(who()) == "nobody"


def test_errors_come_back_as_they_are():
    async def fail():
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        run_sync(fail())


async def test_sync_code_can_call_it_inside_a_running_loop():
    assert run_sync(who()) == "nobody"


def test_sync_code_inside_its_own_loop_can_call_it_again():
    async def outer():
        name.set("outer")
        return run_sync(who())

    assert run_sync(outer()) == "outer"


def test_errors_of_a_nested_call_come_back_too():
    async def fail():
        raise ValueError("inner")

    async def outer():
        return run_sync(fail())

    with pytest.raises(ValueError, match="inner"):
        run_sync(outer())


def test_many_threads_share_one_loop():
    async def loop_id():
        await asyncio.sleep(0)
        return id(asyncio.get_running_loop())

    with ThreadPoolExecutor(8) as pool:
        loops = set(pool.map(lambda _: run_sync(loop_id()), range(40)))
    assert len(loops) == 1


def test_an_interrupt_cancels_the_coroutine(monkeypatch):
    started, cancelled = threading.Event(), threading.Event()

    async def wait():
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    class Interrupted(event_loop.Future):
        def result(self, timeout=None):
            started.wait(5)
            raise KeyboardInterrupt

    monkeypatch.setattr(event_loop, "Future", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_sync(wait())
    assert cancelled.wait(5)


def test_a_cancelled_coroutine_does_not_hang_its_caller():
    async def give_up():
        raise asyncio.CancelledError

    with pytest.raises(CancelledError):
        run_sync(give_up())
