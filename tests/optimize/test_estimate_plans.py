"""The estimate of each of DSPy's optimisers against the calls that it made with a scripted LM."""

import itertools
import re

import dspy
import pytest

from dspy_mama.optimize.estimate import estimate_plan
from dspy_mama.optimize.estimate_dry import measure_program
from dspy_mama.optimize.estimate_plans import (
    Writer,
    evaluation_step,
    gepa_steps,
    mipro_steps,
    random_search_steps,
    simba_steps,
)
from dspy_mama.retrieval.budget import estimate_tokens
from scripted import default_values, fields_of, scripted_lm, system_of, text_of
from systems.audit.parts import auditor

TRAIN, VALIDATION = 12, 6
CLOSE = 2.5
"""Expected calls lie within this factor of those that were made."""


def pairs(count, start=0):
    names = [f"{number}" for number in range(start, start + count)]
    return [
        dspy.Example(question=f"question {n}?", answer=f"answer {n}.", medical_risk=int(n) % 2 == 0).with_inputs(
            "question", "answer"
        )
        for n in names
    ]


def judge(request):
    """Risky for even numbers in half of the domains: neither perfect nor hopeless."""
    number = re.findall(r"question (\d+)", text_of(request.messages[-1]))
    return default_values(fields_of(request), risk=bool(number) and int(number[-1]) % 3 == 0)


def write(request):
    """Answers DSPy's own prompts, field by field, in the form that they ask for."""
    wanted = re.findall(r"`(\w+)`", text_of(request.messages[-1]).rsplit("Respond with", 1)[-1])
    return {name: {"initial.assess": "look twice"} if name == "module_advice" else "look twice" for name in wanted}


def metric(gold, audit, *_):
    return float(gold.medical_risk == audit.medical_risk)


class Case:
    def __init__(self):
        self.lm = scripted_lm(judge, max_tokens=400)
        self.writer = scripted_lm(write, name="scripted/writer", max_tokens=1000)
        self.program = auditor(self.lm, ablation="ma_without_ma2", system="baseline")
        given = [example.inputs().toDict() for example in pairs(3)]
        self.costs = measure_program(self.program, given)
        self.train, self.validation = pairs(TRAIN), pairs(VALIDATION, TRAIN)

    def holds(self, steps):
        estimate = estimate_plan(steps, self.costs)
        rows = {True: [], False: []}
        for row in estimate.rows:
            rows[row.role == "reflector"].append(row)
        for is_writer, lm in ((False, self.lm), (True, self.writer)):
            made, mine = len(lm.requests), rows[is_writer]
            expected, most = (sum(getattr(row.calls, side) for row in mine) for side in ("expected", "most"))
            assert made <= most, f"{made} calls, at most {most} were said"
            assert expected / CLOSE <= made <= max(expected * CLOSE, 1), f"{made} calls, {expected} were expected"
            sent = sum(
                estimate_tokens(system_of(request) + "".join(text_of(m) for m in request.messages))
                for request in lm.requests
            )
            assert sent <= sum(row.prompt_tokens.most for row in mine)
        return estimate


@pytest.fixture
def case():
    return Case()


def test_evaluation(case):
    for example in case.validation:
        case.program(**example.inputs())
    estimate = case.holds([evaluation_step("evaluate", VALIDATION)])
    assert estimate.calls.expected == len(case.lm.requests)


def test_random_search(case):
    optimiser = dspy.BootstrapFewShotWithRandomSearch(
        metric=metric, max_bootstrapped_demos=2, max_labeled_demos=4, num_candidate_programs=3, num_threads=1
    )
    optimiser.compile(case.program, trainset=case.train, valset=case.validation)
    case.holds(random_search_steps(TRAIN, VALIDATION, candidates=3, bootstrapped=2, labelled=4))


@pytest.mark.parametrize("calls", [10, 40])
def test_gepa(case, calls):
    def feedback(gold, audit, trace=None, name=None, predictor_trace=None):
        return dspy.Prediction(score=metric(gold, audit), feedback="look twice")

    optimiser = dspy.GEPA(metric=feedback, max_metric_calls=calls, reflection_lm=case.writer, num_threads=1)
    optimiser.compile(case.program, trainset=case.train, valset=case.validation)
    case.holds(gepa_steps(VALIDATION, case.costs, Writer("reflector", case.writer), metric_calls=calls))


def test_simba(case):
    turns = itertools.count()
    case.lm.engine.script = lambda request: default_values(fields_of(request), risk=next(turns) % 3 == 0)
    optimiser = dspy.SIMBA(
        metric=metric, bsize=4, num_candidates=2, max_steps=2, max_demos=2, prompt_model=case.writer, num_threads=1
    )
    optimiser.compile(case.program, trainset=case.train)
    assert case.writer.requests, "no rule was written: this test would hold nothing"
    case.holds(
        simba_steps(TRAIN, case.costs, Writer("reflector", case.writer), batch=4, candidates=2, steps=2, demos=2)
    )


@pytest.mark.parametrize(("minibatch", "demos"), [(None, 2), (3, 2), (None, 0)])
def test_mipro(case, minibatch, demos):
    pytest.importorskip("optuna")
    optimiser = dspy.MIPROv2(
        metric=metric,
        prompt_model=case.writer,
        task_model=case.lm,
        auto=None,
        num_candidates=4,
        max_bootstrapped_demos=demos,
        max_labeled_demos=demos,
        num_threads=1,
    )
    optimiser.compile(
        case.program,
        trainset=case.train,
        valset=case.validation,
        num_trials=5,
        minibatch=minibatch is not None,
        minibatch_size=minibatch or 1,
    )
    case.holds(
        mipro_steps(
            TRAIN,
            VALIDATION,
            case.costs,
            Writer("reflector", case.writer),
            candidates=4,
            trials=5,
            bootstrapped=demos,
            labelled=demos,
            minibatch=minibatch,
        )
    )
