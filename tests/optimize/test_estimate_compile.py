"""What `mama compile --dry-run` says, against what compiling then asked, for every optimiser."""

import itertools
import re
from typing import get_args

import pytest

from dspy_mama.core.cases import QAPair
from dspy_mama.optimize import compile_program
from dspy_mama.optimize.estimate import estimate_plan
from dspy_mama.optimize.estimate_compile import decisions_of, optimizer_steps
from dspy_mama.optimize.estimate_dry import measure_program
from dspy_mama.optimize.estimate_plans import Writer
from dspy_mama.retrieval.budget import estimate_tokens
from dspy_mama.settings import OptimizerSettings
from dspy_mama.settings.optimize import OptimizerName
from optimize.test_estimate_plans import write
from scripted import fields_of, scripted_lm, system_of, text_of
from systems.audit.parts import auditor

SIZES = {"train": 12, "validation": 6, "test": 6}
CLOSE = 3.0
"""Expected calls of the whole plan lie within this factor of those that were made."""


def pairs():
    labels = [{"medical": n % 2 == 0, "ethical": n % 3 == 0, "legal": n % 5 == 0} for n in range(24)]
    made = [
        QAPair(id=f"p{n}", question=f"question {n}?", answer=f"answer {n}.", gold=gold) for n, gold in enumerate(labels)
    ]
    ends = list(itertools.accumulate(SIZES.values(), initial=0))
    return {name: made[start:end] for name, start, end in zip(SIZES, ends, ends[1:], strict=False)}


def judge(request):
    """Right about some pairs, and differently so where the prompt differs."""
    number = int((re.findall(r"question (\d+)", text_of(request.messages[-1])) or ["1"])[-1])
    salt = len(system_of(request)) + len(request.messages)
    values = {}
    form = request.config.response_format
    schema = form.get("schema") or form["json_schema"]["schema"]
    for place, name in enumerate(fields_of(request)):
        kind = schema["properties"][name].get("type")
        risky = (number + place + salt) % 3 == 0
        stated = {"noul": round((number * 7 + place + salt) % 21 / 20, 2)}
        values[name] = (
            risky if kind == "boolean" else stated if kind == "object" else [1] if kind == "array" else "so it is " * 12
        )
    return values


@pytest.mark.parametrize("name", get_args(OptimizerName))
def test_the_estimate_bounds_what_compiling_asks(name):
    if "mipro" in name:
        pytest.importorskip("optuna")
    lm = scripted_lm(judge, max_tokens=400)
    writer = scripted_lm(write, name="scripted/writer", max_tokens=1000)
    more = {"probability": "stated"} if name == "reanchor" else {}
    program = auditor(lm, **more)
    settings = OptimizerSettings(name=name, demos=2, candidates=2, trials=3, minibatch=4, rounds=2, threads=1)
    divided = pairs()
    tried = [{"question": pair.question, "answer": pair.answer} for pair in divided["train"][:3]]
    steps = optimizer_steps(
        settings,
        **SIZES,
        program=measure_program(program, tried),
        writer=Writer("reflector", writer),
        decisions=decisions_of(program),
    )
    estimate = estimate_plan(steps, measure_program(program, tried))
    assert not lm.requests
    assert not writer.requests
    gold = [pair for split in divided.values() for pair in split]
    compile_program(program, gold, settings, splits=divided, reflection_lm=writer)
    requests = [*lm.requests, *writer.requests]
    made = len(requests)
    assert made <= estimate.calls.most
    assert made / CLOSE <= estimate.calls.expected <= made * CLOSE, f"{made} calls were made"
    sent = sum(estimate_tokens(system_of(r) + "".join(text_of(m) for m in r.messages)) for r in requests)
    assert sent <= sum(row.prompt_tokens.most for row in estimate.rows)
    assert sent / CLOSE <= sum(row.prompt_tokens.expected or 0 for row in estimate.rows) <= sent * CLOSE
