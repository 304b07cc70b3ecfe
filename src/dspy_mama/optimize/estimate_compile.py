"""The steps of `mama compile` under its settings, so that a plan has a price before the first token."""

from __future__ import annotations

from typing import Any, Final

from dspy_mama.lm.schema import field_specs
from dspy_mama.optimize.estimate import PlanStep
from dspy_mama.optimize.estimate_plans import (
    Costs,
    Writer,
    evaluation_step,
    gepa_steps,
    mipro_steps,
    random_search_steps,
    simba_steps,
)
from dspy_mama.optimize.optimisers import stages_of
from dspy_mama.settings import OptimizerSettings

_FINALISTS: Final = 5
"""Candidates that are measured on the validation pairs beside the uncompiled program."""
_UNSEEN: Final = {"labelled": 1, "reanchor": 1, "simba": 3}
"""Candidates that the search itself did not try on the validation pairs; replies to the others are known."""


def cut_steps(train: int, decisions: int) -> list[PlanStep]:
    """Returns the steps of ReAnchor; a repeated prompt is answered from the journal.

    A cut changes the label of a pair to its one alternative, so that each decision adds at most one run a pair.

    Args:
        train: Pairs that cuts are fitted on.
        decisions: Outputs of the program that state a probability.
    """
    return [PlanStep("fit cuts of stated probabilities", train, train * (1 + decisions))]


def optimizer_steps(
    settings: OptimizerSettings,
    *,
    train: int,
    validation: int,
    test: int,
    program: Costs,
    writer: Writer,
    teacher: Costs | None = None,
    decisions: int = 0,
) -> list[PlanStep]:
    """Returns the steps of `mama compile` under some settings, for one split.

    Args:
        settings: The optimiser.
        train: Pairs that it learns from.
        validation: Pairs that candidates are compared on.
        test: Pairs that both programs are measured on in the end.
        program: What a run of the program costs.
        writer: The LM that reflects and proposes.
        teacher: What a run of the teacher costs; None = the program itself.
        decisions: Outputs of the program that state a probability.
    """
    stages = stages_of(settings.name)
    steps = [evaluation_step("measure before on validation", validation)]
    for stage in stages:
        steps += _stage_steps(stage, settings, train, validation, program, writer, teacher, decisions)
    demos = settings.demos if settings.demonstrates() else 0
    cuts_only = settings.name in ("none", "token_thresholds")
    most = 0 if cuts_only else (2 * _FINALISTS + 2) * validation if len(stages) > 1 else _FINALISTS * validation
    after = min(_UNSEEN.get(settings.name, 0) * validation, most)
    measured = test if cuts_only else 2 * test
    return [
        *steps,
        PlanStep("measure candidates on validation", after, most, demos),
        PlanStep("measure before and after on test", measured, measured, demos),
    ]


def _stage_steps(
    stage: str,
    own: OptimizerSettings,
    train: int,
    validation: int,
    program: Costs,
    writer: Writer,
    teacher: Costs | None,
    decisions: int,
) -> list[PlanStep]:
    demos = {"bootstrapped": own.demos, "labelled": own.demos}
    if stage == "bootstrap":
        return random_search_steps(train, validation, candidates=own.candidates, teacher=teacher, **demos)
    if stage == "mipro":
        batch = own.minibatch if own.minibatch < validation else None
        search: dict[str, Any] = {"candidates": own.candidates, "trials": own.trials, "minibatch": batch}
        return mipro_steps(train, validation, program, writer, teacher=teacher, **search, **demos)
    if stage == "gepa":
        calls = own.rounds * (train + validation)
        return gepa_steps(validation, program, writer, metric_calls=calls, minibatch=min(own.minibatch, train))
    if stage == "simba":
        batch = min(own.minibatch, train)
        sizes = {"batch": batch, "candidates": own.candidates, "steps": own.rounds, "demos": own.demos}
        return simba_steps(train, program, writer, **sizes)
    if stage == "reanchor":
        return cut_steps(train, decisions)
    if stage == "token_thresholds":
        shown = own.demos if own.demonstrates() else 0
        return [evaluation_step("fit thresholds", train, demos=shown)]
    return []


def decisions_of(program: Any) -> int:
    """Returns how many outputs of a program state a probability."""
    specs = [spec for _, predictor in program.named_predictors() for spec in field_specs(predictor.signature)]
    return sum(spec.kind == "probability" for spec in specs)
