"""What a compile run would cost: its plan, priced before the first token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dspy_mama.core.cases import QAPair
from dspy_mama.core.ports import Retriever
from dspy_mama.datasets import load_pairs
from dspy_mama.lm.module import bind_lms
from dspy_mama.lm.roles import build_lm, build_lms
from dspy_mama.optimize.estimate import Estimate, PlanStep, estimate_plan
from dspy_mama.optimize.estimate_compile import decisions_of, optimizer_steps
from dspy_mama.optimize.estimate_dry import FullEvidence, measure_program
from dspy_mama.optimize.estimate_plans import Writer
from dspy_mama.optimize.metering import check_prices
from dspy_mama.optimize.nested import fold_splits, inner_shares
from dspy_mama.optimize.optimisers import check_optimizer
from dspy_mama.optimize.splitting import check_splits, split_pairs, with_gold
from dspy_mama.settings import BudgetSettings, Settings, to_mapping
from dspy_mama.wiring.build import build_auditor_program, evidence_budget, needs_evidence
from dspy_mama.wiring.compile import check_compile

_TRIED = 5
"""Pairs whose prompts are built to see how long they are."""


def estimate_compile(settings: Settings) -> Estimate:
    """Estimates calls, tokens and money of a compile run; nothing is spent: no LM is asked, and no key is needed.

    Where texts are embedded by a server, its index is not searched either: prompts are then counted with as much
    evidence as may come into them.

    Raises:
        DeclarationError: Settings, data, index or LM are at fault.
    """
    check_compile(settings)
    own = settings.optimizer
    program = build_auditor_program(settings, _evidence(settings), build_lms(settings.lm, asked=False))
    check_optimizer(own, program)
    pairs = with_gold(load_pairs(settings.data).pairs)
    sizes = _sizes(settings, pairs)
    inputs = [{"question": pair.question, "answer": pair.answer} for pair in pairs[:_TRIED]]
    costs = measure_program(program, inputs)
    predictors = [predictor for _, predictor in program.named_predictors()]
    lm = build_lm(own.reflection, asked=False) if own.reflection is not None else predictors[-1].lm
    teacher, taught_by = None, None if own.teacher is None else build_lm(own.teacher, asked=False)
    check_prices(own.budget, [*(predictor.lm for predictor in predictors), lm, taught_by])
    if taught_by is not None:
        copied = program.deepcopy()
        bind_lms(copied, {"default": taught_by})
        teacher = measure_program(copied, inputs)
    steps: list[PlanStep] = []
    for number, size in enumerate(sizes, 1):
        planned = optimizer_steps(
            own,
            train=size["train"],
            validation=size["validation"],
            test=size["test"],
            program=costs,
            writer=Writer("reflection", lm),
            teacher=teacher,
            decisions=decisions_of(program),
        )
        title = "" if len(sizes) == 1 else "all pairs: " if number == len(sizes) else f"fold {number}: "
        steps += [replace(step, name=f"{title}{step.name}") for step in planned]
    limits = to_mapping(own.budget) if own.budget != BudgetSettings() else {}
    return estimate_plan(steps, costs, limits)


def embeds_remotely(settings: Settings) -> bool:
    """Tells whether a search would send texts to a server, which may take a key and money."""
    return needs_evidence(settings) and settings.embedder.kind == "openai"


def _evidence(settings: Settings) -> Retriever | None:
    """Returns full evidence in place of an index that only a server can search; None = the index of the settings."""
    # A saved program is held to the evidence that it was made with, which only its own index can tell.
    if not embeds_remotely(settings) or settings.system.program is not None:
        return None
    return FullEvidence(evidence_budget(settings), settings.retriever.top_k)


def _sizes(settings: Settings, pairs: Sequence[QAPair]) -> list[dict[str, int]]:
    own = settings.optimizer
    if not own.split.folds:
        splits = split_pairs(pairs, own)
        check_splits(splits, own.target)
        return [{name: len(part) for name, part in splits.items()}]
    plans = fold_splits(pairs, own)
    for splits in plans:
        check_splits(splits, own.target)
    folds = [{name: len(part) for name, part in splits.items()} for splits in plans]
    train = round(len(pairs) * inner_shares(own)["train"])
    return [*folds, {"train": train, "validation": len(pairs) - train, "test": 0}]
