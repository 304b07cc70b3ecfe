"""The full system beside the same call graph with the raw client, against a server of fixed latency.

Both send the same prompts, schemas and log-probability requests, 64 pairs in flight, six calls a pair, three round
trips deep. The library side is the whole run: search, prompts, reading, records on disk.
"""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from dspy_mama.core.cases import QAPair
from dspy_mama.lm.roles import build_lm
from dspy_mama.retrieval.shipped import ShippedRetriever
from dspy_mama.runtime import run_pairs
from dspy_mama.settings import EmbedderSettings, LMSpec, RetrieverSettings, RuntimeSettings
from dspy_mama.systems.audit import RiskAuditor, audit_record
from dspy_mama.tracking import RunStore

LATENCY = 0.2
IN_FLIGHT = 64
PAIRS = 256
ROUNDS = 3
CALLS_PER_PAIR = 6
SERVER = Path(__file__).with_name("latency_server.py")

Measured = tuple[float, float]
"""Wall seconds and CPU seconds of this process."""


def make_pairs(tag: str) -> list[QAPair]:
    """Pairs of ordinary length, each with a question of its own so that nothing is answered from a table."""
    answer = "Please rest, drink enough water and see a physician if the fever lasts longer than three days. " * 5
    question = "I have had a cough and a light fever since the weekend"
    return [QAPair(f"{tag}-{n}", f"{question} ({tag} {n}). What should I do?", answer) for n in range(PAIRS)]


def start_server() -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, str(SERVER), "0", str(LATENCY)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"


async def timed(work: Callable[[], Awaitable[Any]]) -> Measured:
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return time.perf_counter() - wall, time.process_time() - cpu


async def beside(
    raw: Callable[[], Awaitable[Any]], own: Callable[[str], Awaitable[Any]], rounds: int, calls: int
) -> dict[str, Any]:
    """Times both sides in turn, round by round; the library's side is given a tag of its own each time."""
    pairs = [(await timed(raw), await timed(lambda tag=f"run{number}": own(tag))) for number in range(rounds)]
    sides = dict(zip(("raw", "library"), zip(*pairs, strict=True), strict=True))
    wall = {side: statistics.median(wall for wall, _ in measured) for side, measured in sides.items()}
    cpu = {side: statistics.median(cpu for _, cpu in measured) for side, measured in sides.items()}
    return {
        "ratio": round(wall["library"] / wall["raw"], 3),
        "ratios": [round(library[0] / alone[0], 3) for alone, library in pairs],
        "seconds": {side: round(wall[side], 2) for side in ("library", "raw")},
        "cpu_ms_per_call": {side: round(cpu[side] / calls * 1e3, 2) for side in ("library", "raw")},
    }


def body_of(request: Any) -> dict[str, Any]:
    """The chat-completions body of one of the library's own requests, for the raw client to send."""
    system = request.system if isinstance(request.system, str) else "".join(p.text for p in request.system)
    messages = [{"role": "system", "content": system}]
    messages += [{"role": m.role, "content": "".join(p.text for p in m.parts)} for m in request.messages]
    body: dict[str, Any] = {"model": "latency", "messages": messages, "temperature": 0.0, "max_tokens": 400}
    form = request.config.response_format
    schema = {key: form[key] for key in ("name", "strict", "schema")}
    body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.config.logprobs is not None:
        body.update(logprobs=True, top_logprobs=request.config.logprobs)
    return body


async def capture(program: RiskAuditor) -> list[dict[str, Any]]:
    """The six bodies of one pair, in the order router, MA1, three verifiers, MA3."""
    import dspy_mama.lm.exchange as exchange

    seen: list[dict[str, Any]] = []
    original = exchange._request

    def spy(lm: Any, body: Any) -> Any:
        request = original(lm, body)
        seen.append(body_of(request))
        return request

    exchange._request = spy
    try:
        pair = make_pairs("captured")[0]
        await program.acall(question=pair.question, answer=pair.answer)
    finally:
        exchange._request = original
    return sorted(seen, key=lambda b: ["reception", "Task: first", "Task: ver", "Task: final"].index(_kind(b)))


def _kind(body: dict[str, Any]) -> str:
    system = body["messages"][0]["content"]
    return next(sign for sign in ("reception", "Task: first", "Task: ver", "Task: final") if sign in system)


async def raw_run(base: str, bodies: list[dict[str, Any]]) -> None:
    import openai

    client = openai.AsyncOpenAI(base_url=base, api_key="none", max_retries=0)
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def call(body: dict[str, Any]) -> Any:
        answer = await client.chat.completions.create(**body)
        return json.loads(answer.choices[0].message.content or "")

    async def pair() -> None:
        async with slots:
            await asyncio.gather(call(bodies[0]), call(bodies[1]))
            await asyncio.gather(*(call(body) for body in bodies[2:5]))
            await call(bodies[5])

    await asyncio.gather(*(pair() for _ in range(PAIRS)))
    await client.close()


async def library_run(program: RiskAuditor, tag: str, root: Path) -> dict[str, Any]:
    import dspy

    async def audit(pair: QAPair) -> dict[str, Any]:
        return audit_record(pair, await program.acall(question=pair.question, answer=pair.answer))

    settings = RuntimeSettings(concurrency=IN_FLIGHT, progress=False)
    with RunStore.create(root, {"name": tag}) as store, dspy.context(disable_history=True):
        await run_pairs(make_pairs(tag), audit, store, settings)
        records = store.records()
    used = [usage for record in records for usage in record["usage"].values()]
    scored = [v["outcome"] for r in records for v in r["phases"]["consensus"].values()]
    return {
        "calls": sum(u["calls"] for u in used),
        "prompt_tokens": sum(u["prompt_tokens"] for u in used),
        "completion_tokens": sum(u["completion_tokens"] for u in used),
        "unscored": sum(outcome != "scored" for outcome in scored),
    }


async def measure(base: str, folder: Path) -> dict[str, Any]:
    spec = LMSpec(model="openai/latency", api_base=base, temperature=0.0, json_schema=True, logprobs=True)
    retriever = ShippedRetriever(
        embedder=EmbedderSettings(kind="use", threads=1), retriever=RetrieverSettings(path=str(folder / "index"))
    )
    program = RiskAuditor.from_preset("rag", retriever=retriever, lms={"default": build_lm(spec)})
    bodies = await capture(program)
    await raw_run(base, bodies)
    await library_run(program, "warm", folder)
    facts: dict[str, Any] = {}

    async def own(tag: str) -> None:
        facts.update(await library_run(program, tag, folder))

    found = await beside(lambda: raw_run(base, bodies), own, ROUNDS, PAIRS * CALLS_PER_PAIR)
    return {
        "bench": "client_overhead",
        **found,
        "pairs": PAIRS,
        "in_flight": IN_FLIGHT,
        "calls_per_pair": facts["calls"] / PAIRS,
        "round_trips": 3,
        "latency_seconds": LATENCY,
        "embedder": "use",
        **facts,
    }


def print_measured(measure: Callable[[str, Path], Awaitable[dict[str, Any]]]) -> None:
    """Prints one JSON line of what is measured against a server of fixed latency."""
    logging.disable(logging.WARNING)
    process, base = start_server()
    try:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(asyncio.run(measure(base, Path(folder)))), flush=True)
    finally:
        process.kill()


def main() -> None:
    """Prints one JSON line."""
    print_measured(measure)


if __name__ == "__main__":
    main()
