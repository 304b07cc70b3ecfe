"""Invariants: every pair is recorded once; no more than `concurrency` are in flight; nothing recorded is lost."""

import asyncio
import dataclasses
import threading

import pytest
from tests.runtime.fakes import Watcher, pairs, record

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.runtime import TooManyFailuresError, pair_key, run_pairs
from dspy_mama.settings import RuntimeSettings
from dspy_mama.tracking import RunStore, final_outcomes


@pytest.fixture
def store(tmp_path):
    with RunStore.create(tmp_path, {"name": "x"}) as opened:
        yield opened


async def good(pair):
    await asyncio.sleep(0)
    return record(routing={"specialty": "x"})


async def test_every_pair_is_recorded_once_with_its_identity(store):
    watcher = Watcher()

    result = await run_pairs(pairs(50), good, store, RuntimeSettings(concurrency=8), progress=watcher)

    found = {r["id"]: r for r in store.records()}
    assert (result.done, result.skipped, result.failed, result.interrupted) == (50, 0, 0, False)
    assert set(found) == {f"p{n}" for n in range(50)}
    assert found["p7"]["question"] == "question 7"
    assert found["p7"]["key"] == pair_key(pairs(8)[7])
    assert found["p7"]["gold"] == {"medical": None, "ethical": None, "legal": None}
    assert found["p7"]["seconds"] >= 0
    assert (watcher.total, len(watcher.records), watcher.closed) == (50, 50, True)


async def test_no_more_pairs_than_allowed_are_in_flight_and_pairs_are_read_as_needed(store):
    now = most = read = 0

    def stream():
        nonlocal read
        for pair in pairs(1000):
            read += 1
            assert read <= done + 5
            yield pair

    done = 0

    async def audit(pair):
        nonlocal now, most, done
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        done += 1
        return record()

    result = await run_pairs(stream(), audit, store, RuntimeSettings(concurrency=4))

    assert (most, result.done) == (4, 1000)


async def test_finished_pairs_are_skipped_and_infrastructure_failures_tried_again(store):
    broken = {"p1", "p4"}
    seen = []

    async def audit(pair):
        seen.append(pair.id)
        if pair.id in broken:
            raise ExecutionError("connection refused")
        return record()

    first = await run_pairs(pairs(5), audit, store, RuntimeSettings())
    broken.clear()
    seen.clear()
    second = await run_pairs(pairs(6), audit, store, RuntimeSettings())

    assert (first.done, first.failed) == (3, 2)
    assert (second.done, second.skipped, second.failed) == (3, 3, 0)
    assert sorted(seen) == ["p1", "p4", "p5"]
    assert {final_outcomes(r)["legal"] for r in store.records()} == {"scored"}


async def test_a_pair_that_stands_twice_is_audited_once_and_a_repeat_is_another_pair(store):
    twice = await run_pairs([*pairs(2), *pairs(2)], good, store, RuntimeSettings())
    again = await run_pairs(pairs(2), good, store, RuntimeSettings(), repeat=1)

    assert (twice.done, twice.skipped, again.done) == (2, 2, 2)
    assert sorted(r["repeat"] for r in store.records()) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "error", [ExecutionError("401 for Zq8vT1-opaque\nmore"), ValueError("Zq8vT1-opaque"), TimeoutError(), KeyError("x")]
)
async def test_whatever_one_pair_raises_becomes_infra_in_every_domain_without_its_secrets(store, monkeypatch, error):
    monkeypatch.setenv("SOME_API_KEY", "Zq8vT1-opaque")

    async def audit(pair):
        if pair.id == "p0":
            raise error
        return record()

    result = await run_pairs(pairs(3), audit, store, RuntimeSettings(), final_phase="initial")

    failed = next(r for r in store.records() if r["id"] == "p0")
    assert (result.done, result.failed) == (2, 1)
    assert final_outcomes(failed) == {"medical": "infra", "ethical": "infra", "legal": "infra"}
    assert failed["final_phase"] == "initial"
    assert set(failed["verdicts"].values()) == {"undetermined"}
    assert failed["needs_review"] is True
    assert failed["phases"]["initial"]["legal"]["error"]
    assert "opaque" not in (store.folder / "records.jsonl").read_text()


async def test_a_declaration_error_stops_the_run_at_once_and_keeps_what_is_done(store):
    started = []

    async def audit(pair):
        started.append(pair.id)
        if pair.id == "p3":
            raise DeclarationError("lm.default.model=x: no such model")
        return record()

    with pytest.raises(DeclarationError, match="no such model"):
        await run_pairs(pairs(100), audit, store, RuntimeSettings(concurrency=1))

    assert started == ["p0", "p1", "p2", "p3"]
    assert len(store.records()) == 3


async def test_a_declaration_error_is_found_among_calls_made_side_by_side(store):
    async def audit(pair):
        raise ExceptionGroup("side by side", [ValueError("x"), ExceptionGroup("in", [DeclarationError("bad role")])])

    with pytest.raises(DeclarationError, match="bad role"):
        await run_pairs(pairs(5), audit, store, RuntimeSettings())


async def test_the_error_inside_a_group_is_what_the_record_names(store):
    async def audit(pair):
        raise ExceptionGroup("unhandled errors in a TaskGroup", [ExecutionError("server gone")])

    await run_pairs(pairs(1), audit, store, RuntimeSettings())

    assert store.records()[0]["phases"]["consensus"]["legal"]["error"] == "server gone"


async def test_a_record_of_the_wrong_shape_stops_the_run(store):
    async def audit(pair):
        return {"phases": {}, "final_phase": "consensus"}

    with pytest.raises(DeclarationError, match="'p0' has no verdicts of a final phase"):
        await run_pairs(pairs(5), audit, store, RuntimeSettings(concurrency=1))


async def test_failures_in_a_row_stop_the_run_with_the_last_error_and_keep_everything(store):
    calls = 0

    async def audit(pair):
        nonlocal calls
        calls += 1
        if calls == 3:
            return record()
        raise ExecutionError(f"503 at call {calls}")

    settings = RuntimeSettings(concurrency=1, max_failures_in_row=4)
    with pytest.raises(TooManyFailuresError, match=r"4 pairs failed one after the other .*503 at call 7") as caught:
        await run_pairs(pairs(100), audit, store, settings)

    assert calls == 7
    assert (caught.value.result.done, caught.value.result.failed) == (1, 6)
    assert len(store.records()) == 7


async def test_records_that_come_back_as_infra_count_as_failures_too(store):
    async def audit(pair):
        return record("infra")

    with pytest.raises(TooManyFailuresError):
        await run_pairs(pairs(100), audit, store, RuntimeSettings(concurrency=16, max_failures_in_row=5))

    assert 5 <= len(store.records()) <= 20


async def test_texts_stay_out_of_the_records_where_they_are_not_wanted(store):
    async def audit(pair):
        if pair.id == "p0":
            raise ExecutionError("x")
        return record(question=pair.question, answer=pair.answer)

    await run_pairs(pairs(2), audit, store, RuntimeSettings(), store_text=False)

    assert all(not {"question", "answer", "notes"} & set(r) for r in store.records())
    assert "question 1" not in (store.folder / "records.jsonl").read_text()


async def test_observers_get_each_record_in_a_thread_and_cannot_fail_the_run(store):
    seen, threads, watcher = [], set(), Watcher()

    def observe(one):
        seen.append(one["id"])
        threads.add(threading.current_thread())
        if len(seen) == 3:
            raise ValueError("tracking is down")

    result = await run_pairs(pairs(9), good, store, RuntimeSettings(), progress=watcher, on_record=observe)

    assert (result.done, len(seen)) == (9, 3)
    assert threading.main_thread() not in threads
    assert watcher.messages == ["Records are no longer handed on: ValueError: tracking is down"]


async def test_a_disk_that_refuses_ends_the_run_with_the_reason(store, monkeypatch):
    def refuse(*records):
        raise ExecutionError("records.jsonl cannot be written (No space left)")

    monkeypatch.setattr(store, "append", refuse)
    with pytest.raises(ExecutionError, match="No space left"):
        await run_pairs(pairs(1000), good, store, RuntimeSettings(concurrency=2))


async def test_a_cancelled_run_keeps_what_is_done(store):
    gate = asyncio.Event()

    async def audit(pair):
        if pair.id == "p3":
            gate.set()
            await asyncio.Event().wait()
        return record()

    task = asyncio.create_task(run_pairs(pairs(9), audit, store, RuntimeSettings(concurrency=1)))
    await gate.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [r["id"] for r in store.records()] == ["p0", "p1", "p2"]


async def test_a_run_works_off_the_main_thread(store):
    result = await asyncio.to_thread(lambda: asyncio.run(run_pairs(pairs(3), good, store, RuntimeSettings())))

    assert result.done == 3


async def test_pairs_that_cannot_be_read_on_stop_the_run_and_keep_what_is_done(store):
    def stream():
        yield from pairs(2)
        raise DeclarationError("data.csv: row 4")

    with pytest.raises(DeclarationError, match="row 4"):
        await run_pairs(stream(), good, store, RuntimeSettings(concurrency=1))

    assert len(store.records()) == 2


def test_a_key_depends_on_id_texts_and_repeat_alone():
    one, other = pairs(2)
    assert pair_key(one) == pair_key(dataclasses.replace(one, gold={"medical": True}, source="other"))
    changed = [
        dataclasses.replace(one, id="x"),
        dataclasses.replace(one, question="x"),
        dataclasses.replace(one, answer="x"),
    ]
    assert len({pair_key(one), pair_key(other), pair_key(one, 1), *map(pair_key, changed)}) == 6
