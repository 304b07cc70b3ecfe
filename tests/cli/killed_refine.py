"""`mama refine` in a process of its own, to be killed: `python killed_refine.py COUNTER RELEASE HOLD_FROM ARGUMENT...`.

Requests from number HOLD_FROM on wait in their first assessment until the file RELEASE exists; every call is noted.
"""

import asyncio
import sys
from pathlib import Path

import dspy

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS))

from dspy_mama.cli import main  # noqa: E402
from dspy_mama.lm import roles  # noqa: E402
from scripted import AsyncScriptedEngine, ScriptedEngine, user_of  # noqa: E402
from systems.refine.loops import Loop, kind_of  # noqa: E402

counter, release, hold_from = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])


def number_of(request):
    return int(str(user_of(request)).split("number ")[1].split(" ")[0])


def script(request):
    kind, text, number = kind_of(request), str(user_of(request)), number_of(request)
    with counter.open("a") as stream:
        stream.write(f"{number} {kind}\n")
    again = "mended" in text
    if kind in ("ethics", "safety"):
        return Loop([0 if again else 7], [1 if again else 4])._answer(request)
    if kind in ("generate", "refine"):
        return {"reply": "take them all" if kind == "generate" else "mended: ask a physician first"}
    return Loop([0], [1])._answer(request)


class HeldEngine(AsyncScriptedEngine):
    """Waits without blocking the others."""

    async def complete(self, request):
        reply = await super().complete(request)
        while kind_of(request) == "ethics" and number_of(request) >= hold_from and not release.exists():
            await asyncio.sleep(0.005)
        return reply


def held_lm(spec, sampling):
    engine = ScriptedEngine(script)
    settings = {"cache": False, "num_retries": 0, "max_tokens": 200, "temperature": 0.0}
    return dspy.LM("scripted/a", engine=engine, async_engine=HeldEngine(engine), **settings)


roles._embedded = held_lm
sys.exit(main(sys.argv[4:]))
