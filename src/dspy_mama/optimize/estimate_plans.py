"""How often each of DSPy's optimisers runs the program, from its parameters alone.

Counted from the source of dspy 3.4 and gepa 0.1; tests hold every bound against the calls of scripted runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from dspy_mama.lm.prices import price_of
from dspy_mama.optimize.estimate import OtherCalls, PlanStep
from dspy_mama.optimize.estimate_dry import PredictorCost

Costs = tuple[PredictorCost, ...]
"""What a run of a program costs, by predictor."""

_FALLBACK: Final = 3
"""DSPy's own prompts are asked again with other adapters where a reply cannot be read, twice at most."""
_GEPA_PROMPT: Final = 1000
"""Tokens of GEPA's own text around the instruction and the examples that it reflects on."""
_PROPOSER_PROMPT: Final = 2500
"""Tokens of MIPROv2's own texts and the program's code in a proposal."""
_CONTEXT: Final = 3
"""Demonstrations that MIPROv2 bootstraps where none are wanted in the prompts: they inform its proposals."""


@dataclass(frozen=True, slots=True)
class Writer:
    """An LM that writes instructions.

    Attributes:
        role: Its role.
        lm: The LM; None = none is set.
    """

    role: str
    lm: Any

    def calls(self, expected: int, most: int, prompt: int | None) -> OtherCalls:
        """Returns its calls in a step; a prompt is at most twice as long as expected.

        Args:
            expected: Calls expected.
            most: Calls at most.
            prompt: Tokens of a prompt; None = unknown.
        """
        kwargs = getattr(self.lm, "kwargs", {})
        limit = kwargs.get("max_completion_tokens") or kwargs.get("max_tokens")
        model = None if self.lm is None else str(self.lm.model)
        most_prompt = None if prompt is None else 2 * prompt
        return OtherCalls(self.role, model, expected, most, prompt, most_prompt, limit, price_of(self.lm))


def evaluation_step(name: str, pairs: int, *, programs: int = 1, demos: int = 0) -> PlanStep:
    """Returns the evaluation of some programs on every pair."""
    return PlanStep(name, programs * pairs, programs * pairs, demos)


def _bootstrap_runs(train: int, sizes: list[int], rounds: int) -> tuple[int, int]:
    """Returns runs of several bootstraps, expected where every second attempt succeeds, and at most."""
    return sum(min(2 * size, train) for size in sizes), len(sizes) * train * rounds


def random_search_steps(
    train: int,
    validation: int,
    *,
    candidates: int,
    bootstrapped: int,
    labelled: int,
    rounds: int = 1,
    teacher: Costs | None = None,
) -> list[PlanStep]:
    """Returns the steps of BootstrapFewShot with random search.

    Args:
        train: Pairs that demonstrations come from.
        validation: Pairs that candidates are compared on.
        candidates: Candidates besides the three that it always tries.
        bootstrapped: Bootstrapped demonstrations per prompt at most.
        labelled: Labelled and bootstrapped demonstrations per prompt at most.
        rounds: Attempts per pair.
        teacher: What a run of the teacher costs; None = the program itself.
    """
    demos = max(bootstrapped, labelled)
    sizes = [bootstrapped, *[(1 + bootstrapped) // 2 or 1] * candidates]
    runs, most = _bootstrap_runs(train, sizes, rounds)
    return [
        PlanStep("bootstrap demonstrations", runs, most, labelled, by=teacher),
        evaluation_step("compare candidates", validation, programs=candidates + 3, demos=demos),
    ]


def mipro_steps(
    train: int,
    validation: int,
    program: Costs,
    writer: Writer,
    *,
    candidates: int,
    trials: int,
    bootstrapped: int,
    labelled: int,
    minibatch: int | None = None,
    full_every: int = 5,
    predictors: int | None = None,
    teacher: Costs | None = None,
) -> list[PlanStep]:
    """Returns the steps of MIPROv2 with explicit candidates and trials.

    Args:
        train: Pairs that demonstrations come from.
        validation: Pairs that candidates are compared on.
        program: What a run of the program costs.
        writer: The LM that proposes instructions.
        candidates: Instructions and sets of demonstrations to choose from.
        trials: Combinations to try.
        bootstrapped: Bootstrapped demonstrations per prompt at most.
        labelled: Labelled and bootstrapped demonstrations per prompt at most.
        minibatch: Pairs of a trial; None = all.
        full_every: With a minibatch, trials between evaluations on all pairs.
        predictors: Predictors of the program; None = those that a run asks.
        teacher: What a run of the teacher costs; None = the program itself.
    """
    shown = bootstrapped if bootstrapped or labelled else _CONTEXT
    sets = max(candidates - 2, 0) + (0 if labelled else 1)
    runs, most = _bootstrap_runs(train, [shown] * sets, 1)
    evaluated = validation + trials * (minibatch or validation)
    if minibatch:
        evaluated += (trials // full_every + 2) * validation
    material = max((cost.user_most + cost.reply for cost in program), default=0)
    proposals = candidates * (predictors or len(program))
    summary = 2 + min(10, math.ceil(train / 10))
    asked = 3 * proposals + summary
    prompt = _PROPOSER_PROMPT + max((cost.system for cost in program), default=0) + 10 * material
    proposal = PlanStep("propose instructions", 0, 0, others=(writer.calls(asked, _FALLBACK * asked, prompt),))
    demos = max(bootstrapped, labelled)
    return [
        PlanStep("bootstrap demonstrations", runs, most, labelled, by=teacher),
        proposal,
        PlanStep("try combinations", evaluated, evaluated, demos),
    ]


def gepa_steps(
    validation: int, program: Costs, writer: Writer, *, metric_calls: int, minibatch: int = 3
) -> list[PlanStep]:
    """Returns the steps of GEPA under a budget of metric calls; it looks at the budget between iterations only.

    Args:
        validation: Pairs that candidates are compared on.
        program: What a run of the program costs.
        writer: The LM that reflects.
        metric_calls: GEPA's own budget.
        minibatch: Pairs that it reflects on at a time.
    """
    most = max(metric_calls, validation) + 2 * minibatch + 2 * validation
    runs = max(metric_calls, validation)
    left = max(metric_calls - validation, 0)
    reflections = math.ceil(left / (2 * minibatch + validation / 4))
    # An iteration runs its minibatch before it reflects, so there are no more reflections than minibatches.
    reflections_most = math.ceil(left / minibatch) + 1 if left else 0
    example = max((cost.system + cost.user_most + 2 * cost.reply for cost in program), default=0)
    prompt = _GEPA_PROMPT + minibatch * example
    return [
        PlanStep("reflect and try", runs, most, 0, (writer.calls(reflections, _FALLBACK * reflections_most, prompt),))
    ]


def simba_steps(
    train: int,
    program: Costs,
    writer: Writer,
    *,
    batch: int,
    candidates: int,
    steps: int,
    demos: int,
) -> list[PlanStep]:
    """Returns the steps of SIMBA.

    Args:
        train: Pairs to learn from.
        program: What a run of the program costs.
        writer: The LM that writes rules.
        batch: Pairs of a step.
        candidates: Samples per pair, and new programs per step.
        steps: Steps.
        demos: Demonstrations per prompt at most.
    """
    sampled = steps * batch * candidates
    tried = steps * batch * (candidates + 1)
    final = (candidates + 1) * train
    rules = steps * (candidates + 1)
    both = 2 * sum(cost.system + cost.user_most + cost.reply for cost in program)
    half = rules if demos == 0 else math.ceil(rules / 2)
    most = sampled + tried + final
    return [
        # A demonstration is dropped only once there are more than `demos`, one of each step's bucket is added before.
        PlanStep("sample and try", most, most, demos + 1, (writer.calls(half, _FALLBACK * rules, both + 2000),)),
    ]
