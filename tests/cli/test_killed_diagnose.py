"""A run is killed where it stands: the same command loses nothing and repeats no diagnosis that was recorded."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from dspy_mama.tracking import RunStore

PANEL = Counter(doctor=4, grader=6)
"""Calls of one case by the panel: three doctors and the supervisor, who agree; three units in both orders."""
DIRECT = Counter(doctor=1, grader=6)


def start(folder):
    command = [sys.executable, str(Path(__file__).with_name("killed_diagnose.py")), "calls", "release"]
    options = ["panel=small", "panel.methods=[mac,direct]", "panel.stages=[primary]", "runtime.concurrency=1"]
    command += ["diagnose", "cases.jsonl", *options, "tracking=none", "--json"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def calls(folder):
    found = {}
    for line in (folder / "calls").read_text().splitlines():
        number, kind = line.split()
        found.setdefault(int(number), Counter())[kind] += 1
    return found


def records(folder):
    runs = [spec.parent for spec in folder.glob("mlruns/runs/*/spec.json")]
    assert len(runs) <= 1
    return RunStore.open(runs[0]).records() if runs else ()


def test_a_killed_run_loses_nothing_and_repeats_nothing_that_was_recorded(tmp_path):
    rows = [{"id": f"c{n}", "case": f"case number {n}", "diagnosis": f"case number {n} disease"} for n in range(4)]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "calls").touch()
    first = start(tmp_path)
    while len(records(tmp_path)) < 4 or not calls(tmp_path).get(2, {}).get("grader"):
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    before = calls(tmp_path)
    assert before[0] == before[1] == PANEL + DIRECT
    assert before[2]["doctor"] == PANEL["doctor"]

    (tmp_path / "release").touch()
    out, err = start(tmp_path).communicate(timeout=120)
    found = json.loads(out.strip().splitlines()[-1])
    assert (found["exit_code"], found["resumed"], found["done"]) == (0, 4, 4), err
    expected = {f"c{n}/primary/{method}" for n in range(4) for method in ("mac", "direct")}
    assert {record["id"] for record in records(tmp_path)} == expected
    after = calls(tmp_path)
    assert after[0] == after[1] == after[3] == PANEL + DIRECT
    assert after[2] - before[2] == PANEL + DIRECT
    recorded = sum(usage["calls"] for record in records(tmp_path) for usage in record["usage"].values())
    assert recorded == 4 * (PANEL + DIRECT).total()
    assert found["scores"]["primary"]["mac"]["most_likely"]["value"] == 1.0
