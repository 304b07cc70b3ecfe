"""A run in a process of its own, to be killed: `python interrupted_run.py ROOT COUNTER RELEASE HOLD_FROM`.

Pairs from number HOLD_FROM on take until the file RELEASE exists.
"""

import asyncio
import sys
from pathlib import Path

from dspy_mama.core import DOMAINS, QAPair
from dspy_mama.runtime import make_progress, run_pairs
from dspy_mama.settings import RuntimeSettings
from dspy_mama.tracking import RunStore

root, counter, release, hold_from = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
PAIRS = [QAPair(id=f"p{n}", question="q", answer="a") for n in range(40)]


async def audit(pair: QAPair) -> dict:
    with counter.open("a") as stream:
        stream.write(f"{pair.id}\n")
    await asyncio.sleep(0.002)
    while int(pair.id[1:]) >= hold_from and not release.exists():
        await asyncio.sleep(0.005)
    verdicts = {d: {"outcome": "scored", "risk": False, "reason": "x" * 3000} for d in DOMAINS}
    return {"phases": {"consensus": verdicts}, "final_phase": "consensus"}


with RunStore.start(root, {"name": "kill"}) as store:
    result = asyncio.run(run_pairs(PAIRS, audit, store, RuntimeSettings(concurrency=4), progress=make_progress(False)))
    print(result.done, result.skipped, result.failed, result.interrupted, flush=True)
