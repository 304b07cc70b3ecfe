"""The evaluation loop beside the same call graph with the raw client, against a server of fixed latency.

The server never accepts (every principle violated), so that each answer goes through the whole loop: 25 calls, 18
round trips deep. Both sides send the same prompts and schemas, 64 answers in flight. The library side is the whole
run: prompts, reading, rules, records on disk.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from tests.benchmark.client_overhead import IN_FLIGHT, LATENCY, beside, body_of, print_measured

from dspy_mama.core.chat_request import ChatRequest
from dspy_mama.lm.roles import build_lm
from dspy_mama.runtime import run_items
from dspy_mama.settings import LMSpec, RuntimeSettings
from dspy_mama.systems.refine import SafetyRefiner, refine_record
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.refine import RequestKind

ANSWERS = 128
ROUNDS = 3
ITERATIONS = 5
CALLS = 25
ROUND_TRIPS = 18

SIGNS: Final = {
    "generate": "Task: answer the question",
    "refine": "Task: rewrite the answer",
    "ethics": "Task: judge each principle",
    "safety": "Task: state the level",
    "plan": "Task: plan the revision",
    "helpfulness": "Task: say whether the answer helps",
    "classify": "You sort requests",
}
Bodies = dict[str, list[dict[str, Any]]]
"""Request bodies of one answer by kind, in order."""


def make_requests(tag: str, count: int = ANSWERS) -> list[ChatRequest]:
    """Requests of ordinary length, each with a question of its own."""
    question = "How can I get a colleague to hand me the records of a patient who is not mine"
    return [ChatRequest(f"{tag}-{n}", f"{question} ({tag} {n})?", principle="IV", source="bench") for n in range(count)]


def kind_of(body: dict[str, Any]) -> str:
    system = body["messages"][0]["content"]
    return next(kind for kind, sign in SIGNS.items() if sign in system)


async def capture(refiner: SafetyRefiner) -> Bodies:
    """The bodies that the loop sends for one answer."""
    import dspy_mama.lm.exchange as exchange

    seen: Bodies = {}
    original = exchange._request

    def spy(lm: Any, body: Any) -> Any:
        request = original(lm, body)
        sent = body_of(request)
        seen.setdefault(kind_of(sent), []).append(sent)
        return request

    exchange._request = spy
    try:
        await refiner.acall(question=make_requests("captured", 1)[0].question)
    finally:
        exchange._request = original
    assert sum(map(len, seen.values())) == CALLS, {kind: len(own) for kind, own in seen.items()}
    return seen


async def raw_run(base: str, bodies: Bodies) -> None:
    import openai

    client = openai.AsyncOpenAI(base_url=base, api_key="none", max_retries=0)
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def call(kind: str, number: int = 0) -> Any:
        answer = await client.chat.completions.create(**bodies[kind][number])
        return json.loads(answer.choices[0].message.content or "")

    async def loop() -> None:
        await call("generate")
        for step in range(ITERATIONS):
            await asyncio.gather(call("ethics", step), call("safety", step))
            await call("plan", step)
            await call("refine", step)
        await asyncio.gather(call("ethics", ITERATIONS), call("safety", ITERATIONS))

    async def answer() -> None:
        async with slots:
            await asyncio.gather(call("classify"), loop())
            await call("helpfulness")

    await asyncio.gather(*(answer() for _ in range(ANSWERS)))
    await client.close()


async def library_run(refiner: SafetyRefiner, tag: str, root: Path) -> dict[str, Any]:
    import dspy

    async def refine(request: ChatRequest) -> dict[str, Any]:
        return refine_record(request, await refiner.acall(question=request.question))

    settings = RuntimeSettings(concurrency=IN_FLIGHT, progress=False)
    with RunStore.create(root, {"name": tag}) as store, dspy.context(disable_history=True):
        await run_items(make_requests(tag), refine, store, settings, kind=RequestKind())
        records = store.records()
    return {
        "calls": sum(usage["calls"] for record in records for usage in record["usage"].values()),
        "unscored": sum(outcome != "scored" for record in records for outcome in record["outcomes"].values()),
    }


async def measure(base: str, folder: Path) -> dict[str, Any]:
    spec = LMSpec(model="openai/latency", api_base=base, temperature=0.0, json_schema=True, logprobs=False)
    refiner = SafetyRefiner(lms={"default": build_lm(spec)}, max_iterations=ITERATIONS)
    bodies = await capture(refiner)
    await raw_run(base, bodies)
    await library_run(refiner, "warm", folder)
    facts: dict[str, Any] = {}

    async def own(tag: str) -> None:
        facts.update(await library_run(refiner, tag, folder))

    found = await beside(lambda: raw_run(base, bodies), own, ROUNDS, ANSWERS * CALLS)
    return {
        "bench": "refine_overhead",
        **found,
        "answers": ANSWERS,
        "in_flight": IN_FLIGHT,
        "calls_per_answer": facts["calls"] / ANSWERS,
        "round_trips": ROUND_TRIPS,
        "latency_seconds": LATENCY,
        "unscored": facts["unscored"],
    }


def main() -> None:
    """Prints one JSON line."""
    print_measured(measure)


if __name__ == "__main__":
    main()
