"""Runs in a process of their own are stopped at a known place: pairs from number `hold_from` on wait to be released."""

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from dspy_mama.tracking import RunStore

PAIRS, IN_FLIGHT, HOLD = 40, 4, 20


class Run:
    """A run in another process."""

    def __init__(self, tmp_path, hold_from):
        self.root, self.counter, self.release = tmp_path / "mlruns", tmp_path / "calls", tmp_path / "release"
        self.counter.touch()
        command = [sys.executable, str(Path(__file__).with_name("interrupted_run.py"))]
        command += [str(self.root), str(self.counter), str(self.release), str(hold_from)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def calls(self):
        return Counter(self.counter.read_text().split())

    def records(self):
        folders = list((self.root / "runs").glob("*"))
        assert len(folders) <= 1
        return RunStore.open(folders[0]).records() if folders else ()

    def wait_until(self, reached):
        while not reached():
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.005)

    def wait_until_held(self):
        self.wait_until(lambda: len(self.calls()) == HOLD + IN_FLIGHT)

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        out, err = self.process.communicate(timeout=60)
        return out.strip(), err


@pytest.fixture
def start(tmp_path):
    runs = []

    def start(hold_from=PAIRS):
        runs.append(Run(tmp_path, hold_from))
        return runs[-1]

    yield start
    for run in runs:
        run.process.kill()
        run.process.communicate()


def test_a_killed_run_resumes_without_repeating_a_finished_pair(start):
    first = start(HOLD)
    first.wait_until_held()
    first.wait_until(lambda: len(first.records()) == HOLD)
    first.signal(signal.SIGKILL)
    first.end()

    second = start()
    out, _ = second.end()

    assert out == f"{PAIRS - HOLD} {HOLD} 0 False"
    assert sorted(r["id"] for r in second.records()) == sorted(f"p{n}" for n in range(PAIRS))
    again = {pair for pair, calls in second.calls().items() if calls > 1}
    assert again == {f"p{n}" for n in range(HOLD, HOLD + IN_FLIGHT)}


def test_a_run_killed_at_any_moment_repeats_no_pair_that_was_recorded(start):
    first = start()
    first.wait_until(lambda: len(first.calls()) >= 5)
    first.signal(signal.SIGKILL)
    first.end()
    kept = {r["id"] for r in first.records()}

    second = start()
    out, _ = second.end()

    assert out == f"{PAIRS - len(kept)} {len(kept)} 0 False"
    assert len(second.records()) == PAIRS
    assert not kept & {pair for pair, calls in second.calls().items() if calls > 1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_pairs_in_flight_finish_and_says_so(start, number):
    run = start(HOLD)
    run.wait_until_held()
    run.signal(number)
    said = run.process.stderr.readline()
    run.release.touch()
    out, err = run.end()

    assert f"{IN_FLIGHT} pairs in flight will be finished. Interrupt again to cancel" in said
    assert (run.process.returncode, out, err) == (0, f"{HOLD + IN_FLIGHT} 0 0 True", "")
    assert len(run.records()) == HOLD + IN_FLIGHT

    out, _ = start().end()
    assert out == f"{PAIRS - HOLD - IN_FLIGHT} {HOLD + IN_FLIGHT} 0 False"
    assert set(run.calls().values()) == {1}


def test_the_second_signal_cancels_pairs_that_hang_and_keeps_what_is_done(start):
    run = start(HOLD)
    run.wait_until_held()
    run.signal(signal.SIGINT)
    assert "in flight" in run.process.stderr.readline()
    run.signal(signal.SIGTERM)
    out, err = run.end()

    assert out == f"{HOLD} 0 0 True"
    assert err == "Cancelled. What is done is kept; the same command goes on from here.\n"
    assert len(run.records()) == HOLD


def test_a_signal_while_the_last_pairs_are_in_flight_does_not_make_a_whole_run_interrupted(start):
    run = start(PAIRS - 1)
    run.wait_until(lambda: len(run.calls()) == PAIRS and len(run.records()) == PAIRS - 1)
    run.signal(signal.SIGINT)
    assert "1 pair in flight" in run.process.stderr.readline()
    run.release.touch()
    out, _ = run.end()

    assert out == f"{PAIRS} 0 0 False"


def test_signals_have_their_usual_effect_again_after_a_run(tmp_path):
    code = """
import asyncio, os, signal, sys
from dspy_mama.runtime import run_pairs
from dspy_mama.settings import RuntimeSettings
from dspy_mama.tracking import RunStore
before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
async def nothing(pair): return {}
with RunStore.create(sys.argv[1], {"name": "x"}) as store:
    asyncio.run(run_pairs([], nothing, store, RuntimeSettings()))
assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")
