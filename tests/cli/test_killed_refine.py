"""A run of the loop is killed where it stands: the same command loses nothing and repeats nothing that was finished."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from dspy_mama.tracking import RunStore

REQUESTS, IN_FLIGHT, HOLD = 12, 2, 5
CALLS = Counter({"classify": 1, "generate": 1, "ethics": 2, "safety": 2, "plan": 1, "refine": 1, "helpfulness": 1})
"""Calls of one request that is mended once."""


def calls(folder):
    """Kinds of calls by request."""
    found = {}
    for line in (folder / "calls").read_text().splitlines():
        number, kind = line.split()
        found.setdefault(int(number), Counter())[kind] += 1
    return found


def records(folder):
    runs = [spec.parent for spec in (folder / "mlruns" / "runs").glob("*/spec.json")]
    assert len(runs) <= 1
    return RunStore.open(runs[0]).records() if runs else ()


@pytest.fixture
def start(tmp_path):
    """Starts runs in processes of their own, and ends those that a failed test left."""
    started = []

    def start(hold_from):
        arguments = ["refine", "requests.jsonl", f"runtime.concurrency={IN_FLIGHT}", "tracking=none", "--json"]
        script = Path(__file__).with_name("killed_refine.py")
        command = [sys.executable, str(script), "calls", "release", str(hold_from), *arguments]
        started.append(
            subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_killed_run_loses_nothing_and_repeats_nothing_that_was_finished(start, tmp_path):
    rows = ({"id": f"r{n}", "question": f"request number {n} of a patient"} for n in range(REQUESTS))
    (tmp_path / "requests.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "calls").touch()
    first = start(HOLD)
    while len(records(tmp_path)) < HOLD or len(calls(tmp_path)) < HOLD + IN_FLIGHT:
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    before = calls(tmp_path)
    assert all(before[number] == CALLS for number in range(HOLD))

    (tmp_path / "release").touch()
    out, err = start(HOLD).communicate(timeout=120)
    found = json.loads(out.strip().splitlines()[-1])
    assert (found["exit_code"], found["resumed"], found["done"]) == (0, HOLD, REQUESTS - HOLD), err
    assert sorted(record["id"] for record in records(tmp_path)) == sorted(f"r{n}" for n in range(REQUESTS))
    after = calls(tmp_path)
    assert all(after[number] == CALLS for number in range(HOLD)), "a finished request was asked again"
    assert all(after[number] - before[number] == CALLS for number in range(HOLD, HOLD + IN_FLIGHT))
    assert all(after[number] == CALLS for number in range(HOLD + IN_FLIGHT, REQUESTS))
    recorded = sum(usage["calls"] for record in records(tmp_path) for usage in record["usage"].values())
    assert recorded == REQUESTS * CALLS.total()
    mended = (tmp_path / "requests.jsonl.refined.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in mended] == [f"r{n}" for n in range(REQUESTS)]
