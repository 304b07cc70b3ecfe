"""The panel beside the same conversation in AutoGen's group chat, against a server of fixed latency.

Four doctors and a supervisor, the same prompts, replies of the same length, consensus at the tenth turn. AutoGen needs
the extra `bench`; where it lives in another environment, `MAMA_BENCH_PYTHON` names that one's interpreter.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from dspy_mama.lm.prompt import system_message
from dspy_mama.lm.roles import build_lm
from dspy_mama.lm.schema import field_specs
from dspy_mama.settings import LMSpec
from dspy_mama.systems.mac import DiagnosisPanel

LATENCY = 0.2
CASES = 6
DOCTORS = 4
HERE = Path(__file__).parent
CASE = "A boy of nine has had burning feet since he was six, a dark red rash round the navel, and does not sweat. " * 12


def start_server() -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, str(HERE / "panel_server.py"), str(LATENCY)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, f"http://127.0.0.1:{process.stdout.readline().strip()}"


def counts(base: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{base}/reset") as reply:
        found: dict[str, int] = json.loads(reply.read())
    return {name: round(value / CASES, 1) for name, value in found.items()}


def panel(base: str, mode: Any) -> DiagnosisPanel:
    spec = LMSpec(model="openai/panel", api_base=f"{base}/v1", temperature=0.0, json_schema=True, logprobs=False)
    return DiagnosisPanel(DOCTORS, speaker=mode, prompt_tokens=100_000, lms={"default": build_lm(spec)})


async def ours(program: DiagnosisPanel) -> dict[str, Any]:
    seconds, turns = [], 0
    for _ in range(CASES):
        started = time.perf_counter()
        found = await program.acall(case=CASE, stage="primary")
        seconds.append(time.perf_counter() - started)
        turns = len(found.diagnosis.discussion.turns)
        assert found.consensus
    return {"seconds": seconds, "turns": turns}


def theirs(base: str, mode: str, program: DiagnosisPanel) -> dict[str, Any]:
    said = (program.doctors[0], program.supervisor)
    doctor, supervisor = (part.named_predictors()[0][1] for part in said)
    prompts = [system_message(p.signature, field_specs(p.signature), p.last) for p in (doctor, supervisor)]
    given = {"case": CASE, "doctor": prompts[0], "supervisor": prompts[1], "doctors": DOCTORS, "cases": CASES}
    python = os.environ.get("MAMA_BENCH_PYTHON", sys.executable)
    command = [python, str(HERE / "autogen_panel.py"), f"{base}/v1", mode]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def side(found: dict[str, Any], used: dict[str, float]) -> dict[str, Any]:
    return {"seconds": round(statistics.median(found["seconds"]), 3), "turns": found["turns"], **used}


def measure(base: str, mode: str) -> dict[str, Any]:
    program = panel(base, mode)
    counts(base)
    found = asyncio.run(ours(program))
    own = side(found, counts(base))
    found = theirs(base, mode, program)
    used = counts(base)
    row: dict[str, Any] = {"bench": f"panel_vs_autogen/{mode}", "latency_seconds": LATENCY, "cases": CASES, "ours": own}
    if "error" in found:
        return {**row, "skipped": found["error"]}
    other = side(found, used)
    tokens = [part["prompt_tokens"] + part["completion_tokens"] for part in (own, other)]
    ratios = {"ratio": round(own["seconds"] / other["seconds"], 3), "tokens_ratio": round(tokens[0] / tokens[1], 3)}
    return {**row, **ratios, "calls_ratio": round(own["calls"] / other["calls"], 3), "autogen": other}


def main() -> None:
    """Prints one JSON line for each way of choosing speakers."""
    logging.disable(logging.WARNING)
    process, base = start_server()
    try:
        for mode in ("round_robin", "auto"):
            print(json.dumps(measure(base, mode)), flush=True)
    finally:
        process.kill()


if __name__ == "__main__":
    main()
