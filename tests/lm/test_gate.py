import asyncio
import copy
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from dspy.utils.exceptions import LMInvalidRequestError, LMRateLimitError, LMServerError

from dspy_mama.lm.gate import LONGEST_WAIT, CallFailedError, Gate


async def ok():
    return "ok"


def failing(*errors):
    left = list(errors)

    async def call():
        if left:
            raise left.pop(0)
        return "ok"

    return call


async def test_errors_that_pass_are_repeated():
    gate = Gate(retries=3, backoff=0.001)
    assert await gate.run(failing(LMServerError("x"), LMRateLimitError("y", retry_after=0.0))) == ("ok", 2)


async def test_the_last_error_comes_with_the_count_of_repeats():
    with pytest.raises(CallFailedError) as caught:
        await Gate(retries=2, backoff=0.001).run(failing(*[LMServerError("down")] * 3))
    assert caught.value.repeats == 2
    assert isinstance(caught.value.error, LMServerError)


async def test_errors_that_stay_are_not_repeated():
    with pytest.raises(CallFailedError) as caught:
        await Gate(retries=5).run(failing(LMInvalidRequestError("bad")))
    assert caught.value.repeats == 0


@pytest.mark.parametrize(
    ("asked", "least", "most"), [(3, 3, 3.75), (0, 0, 0), (86_400, 120, 120), (None, 2, 2.5), (-1, 2, 2.5)]
)
def test_waits_follow_retry_after_within_bounds(asked, least, most):
    wait = Gate()._wait(LMRateLimitError("x", retry_after=asked), 1)
    assert least <= wait <= min(most, LONGEST_WAIT)


def test_waits_without_a_hint_double():
    waits = [Gate(backoff=1.0)._wait(LMServerError("x"), attempt) for attempt in range(12)]
    assert all(2**n <= wait <= 1.25 * 2**n for n, wait in enumerate(waits[:6]))
    assert waits[-1] == LONGEST_WAIT


def test_starts_are_spaced_over_threads_and_loops():
    gate = Gate(requests_per_minute=60 / 0.03)
    starts, lock = [], threading.Lock()

    async def call():
        with lock:
            starts.append(time.monotonic())

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda _: asyncio.run(gate.run(call)), range(5)))
    ordered = sorted(starts)
    assert ordered[-1] - ordered[0] >= 4 * 0.03 - 0.005


async def test_a_pause_also_holds_back_calls_that_wait_already():
    gate = Gate(requests_per_minute=60 / 0.05)
    await gate.run(ok)
    waiting = asyncio.create_task(gate.run(ok))
    await asyncio.sleep(0.01)
    began = time.monotonic()
    gate.pause(0.2)
    await waiting
    assert time.monotonic() - began >= 0.2


def test_calls_in_flight_are_bounded_over_loops():
    gate = Gate(max_concurrency=2)
    now = most = 0
    lock = threading.Lock()

    async def call():
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        await asyncio.sleep(0.01)
        with lock:
            now -= 1

    async def several():
        await asyncio.gather(*(gate.run(call) for _ in range(4)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: asyncio.run(several()), range(4)))
    assert most == 2


async def test_a_slot_comes_back_after_an_error_and_after_a_cancellation():
    gate = Gate(max_concurrency=1)
    with pytest.raises(CallFailedError):
        await gate.run(failing(LMInvalidRequestError("bad")))
    release = asyncio.Event()
    holder = asyncio.create_task(gate.run(release.wait))
    queued = [asyncio.create_task(gate.run(ok)) for _ in range(3)]
    await asyncio.sleep(0)
    queued[0].cancel()
    await asyncio.sleep(0)
    release.set()
    await holder
    queued[1].cancel()  # the slot may be on its way to this one
    assert await asyncio.wait_for(queued[2], 2) == ("ok", 0)
    assert await asyncio.wait_for(gate.run(ok), 2) == ("ok", 0)


def test_a_loop_that_was_closed_while_waiting_does_not_keep_the_slot():
    gate = Gate(max_concurrency=1)
    gate_held, let_go = threading.Event(), threading.Event()

    async def hold():
        gate_held.set()
        await asyncio.to_thread(let_go.wait, 5)

    holder = threading.Thread(target=lambda: asyncio.run(gate.run(hold)))
    holder.start()
    gate_held.wait(5)
    loop = asyncio.new_event_loop()
    abandoned = loop.create_task(gate.run(ok))
    loop.run_until_complete(asyncio.sleep(0.01))
    abandoned._log_destroy_pending = False
    loop.close()
    let_go.set()
    holder.join(5)
    assert asyncio.run(asyncio.wait_for(gate.run(ok), 2)) == ("ok", 0)


def test_copies_share_the_gate():
    gate = Gate(max_concurrency=1)
    assert copy.deepcopy({"gate": gate})["gate"] is gate


async def test_a_server_that_asks_for_a_day_is_not_waited_for():
    gate = Gate(retries=3, backoff=0.001)
    with pytest.raises(CallFailedError) as caught:
        await asyncio.wait_for(gate.run(failing(LMRateLimitError("later", retry_after=86_400))), 5)
    assert caught.value.repeats == 0
    assert await asyncio.wait_for(gate.run(ok), 5) == ("ok", 0)
