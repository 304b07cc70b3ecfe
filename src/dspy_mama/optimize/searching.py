"""The search of a compilation: stages, their candidates, and what each is worth on validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dspy_mama.core.cases import QAPair
from dspy_mama.optimize.artifact_hashes import prompt_hashes
from dspy_mama.optimize.examples import shown_questions, training_examples
from dspy_mama.optimize.metering import Meter
from dspy_mama.optimize.optimisers import Search, run_optimiser, stages_of
from dspy_mama.optimize.result import Candidate
from dspy_mama.optimize.selection import Evaluation, evaluate
from dspy_mama.optimize.thresholds import fit_thresholds
from dspy_mama.scoring.reward import Reward, class_weights
from dspy_mama.settings import OptimizerSettings

FINALISTS: Final = 5
"""Candidates that are measured on validation by the corpus-level target; more would choose by chance."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """A compilation with everything it needs."""

    program: Any
    splits: Mapping[str, Sequence[QAPair]]
    settings: OptimizerSettings
    meter: Meter
    reflection: Any
    teacher: Any
    say: Say


def measured_on(plan: Plan, program: Any, split: str) -> Evaluation:
    """Returns a program's audits of a split."""
    return evaluate(program, plan.splits[split], plan.settings.threads)


def value_of(evaluation: Evaluation, target: str) -> float:
    """Returns the target as candidates are ordered by; what has no value comes last."""
    value = evaluation.value(target)
    return -1.0 if value != value else value


def search_candidates(plan: Plan) -> list[tuple[str, Any]]:
    """Runs the stages; each starts from the best candidate of the one before."""
    reward = Reward(class_weights(training_examples(plan.splits["train"])), plan.settings.metric)
    found: list[tuple[str, Any]] = []
    start = plan.program
    for stage in stages_of(plan.settings.name):
        plan.say(f"{stage}: searching on {len(plan.splits['train'])} training pairs")
        if stage == "token_thresholds":
            found.append((stage, _cut(plan, start)))
            continue
        search = Search(
            start.deepcopy(),
            training_examples(plan.splits["train"]),
            training_examples(plan.splits["validation"]),
            reward,
            plan.settings,
            plan.reflection,
            plan.teacher,
            plan.meter.budget.halt,
            lambda: plan.meter.budget.broken,
        )
        programs = _distinct(run_optimiser(stage, search), plan.program)[:FINALISTS]
        tried = [(f"{stage} {number}", program) for number, program in enumerate(programs, 1)]
        found += tried
        start = _best_of(plan, [("start", start), *tried])
    return found


def _best_of(plan: Plan, tried: Sequence[tuple[str, Any]]) -> Any:
    if len(stages_of(plan.settings.name)) == 1:
        return tried[0][1]
    measured = [(program, measured_on(plan, program, "validation")) for _, program in tried]
    return max(measured, key=lambda one: value_of(one[1], plan.settings.target))[0]


def _cut(plan: Plan, program: Any) -> Any:
    """Returns the program with cuts fitted on training pairs that its demonstrations do not show."""
    shown = shown_questions(program)
    pairs = [pair for pair in plan.splits["train"] if pair.question not in shown]
    cut = program.deepcopy()
    cut.thresholds = {}
    fitted = fit_thresholds(evaluate(cut, pairs, plan.settings.threads).labels, plan.settings.target) if pairs else {}
    cut.thresholds = dict(fitted)
    return cut


def signature_of(program: Any) -> tuple[Any, ...]:
    """Returns what makes a program differ from another: prompts, demonstrations, cuts."""
    predictors = [predictor for _, predictor in program.named_predictors()]
    learned = [(sorted(p.fields.items(), key=repr), [sorted(dict(d).items()) for d in p.demos]) for p in predictors]
    return tuple(sorted(prompt_hashes(program).items())), repr(learned), repr(sorted(program.thresholds.items()))


def _distinct(programs: Sequence[Any], base: Any) -> list[Any]:
    seen, kept = {signature_of(base)}, []
    for program in programs:
        if (mark := signature_of(program)) not in seen:
            seen.add(mark)
            kept.append(program)
    return kept


def measure_finalists(plan: Plan, found: Sequence[tuple[str, Any]]) -> list[Candidate]:
    """Measures distinct candidates on validation; one that the budget did not reach to the end is left out."""
    candidates, seen = [], {signature_of(plan.program)}
    for name, program in found:
        mark = signature_of(program)
        if mark in seen:
            continue
        seen.add(mark)
        budget = plan.meter.budget
        plan.say(f"measuring {name} on the validation pairs")
        refused = budget.refused
        candidate = Candidate(name, program, measured_on(plan, program, "validation"))
        if budget.refused > refused:
            plan.say(f"{name} could not be measured to the end: {budget.exhausted()}")
            continue
        candidates.append(candidate)
    return candidates
