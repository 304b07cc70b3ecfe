"""Compiles a program on gold pairs: search on train, choose on validation, look once at test."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.cases import QAPair
from dspy_mama.datasets.stratified import SPLITS
from dspy_mama.lm.module import bind_lms
from dspy_mama.optimize.budget import Budget, Spent
from dspy_mama.optimize.files import write_result
from dspy_mama.optimize.journal import Journal
from dspy_mama.optimize.ledger import note_look
from dspy_mama.optimize.metering import Meter, check_prices, heartbeat, meter_program, metered, unmetered
from dspy_mama.optimize.optimisers import check_optimizer
from dspy_mama.optimize.result import Candidate, CompileResult, Measured, measure
from dspy_mama.optimize.searching import Plan, Say, measure_finalists, measured_on, search_candidates, value_of
from dspy_mama.optimize.splitting import check_splits, doubts_about, split_pairs, with_gold
from dspy_mama.settings import BudgetSettings, OptimizerSettings, from_mapping

logger = logging.getLogger(__name__)

REFLECTION_RETRIES: Final = 5
"""Repeats after 429 and 5xx of LMs that no gate stands before."""


def compile_program(
    program: Any,
    pairs: Sequence[QAPair],
    optimizer: str | OptimizerSettings = "gepa",
    *,
    budget: Mapping[str, float] | BudgetSettings | None = None,
    reflection_lm: Any = None,
    teacher_lm: Any = None,
    splits: Mapping[str, Sequence[QAPair]] | None = None,
    folder: str | Path | None = None,
    journal: str | Path | None = None,
    ledger: str | Path | None = None,
    looks_as: str | None = None,
    keep_journal: bool = False,
    say: Say | None = None,
    **options: Any,
) -> CompileResult:
    """Compiles a program on gold pairs, and proves whether it helped.

    Example:
        ```python
        from dspy_mama import RiskAuditor
        from dspy_mama.optimize import compile_program
        auditor = RiskAuditor.from_preset(lms={"default": lm})
        result = compile_program(auditor, pairs, "gepa", reflection_lm=strong, budget={"calls": 2000})
        result.kept, result.test.finding, result.program
        ```

    Args:
        program: A `RiskAuditor` with its LMs.
        pairs: Pairs with gold labels; those without any are left out.
        optimizer: Name of an optimiser, or its settings.
        budget: At most so many `calls`, `tokens`, dollars (`cost`) and `minutes`, measuring included.
        reflection_lm: LM that proposes; None = the judge's.
        teacher_lm: LM that makes demonstrations; None = each role's own.
        splits: Pairs by `train`, `validation` and `test`; None = as the settings say.
        folder: Where splits, candidates and the program are written; None = nowhere.
        journal: File of replies, for going on after a kill; None = `calls.jsonl` in the folder. It holds texts of
            pairs, and is deleted when the compilation is complete.
        ledger: File of looks at test sets; None = `test_looks.jsonl` beside the folder.
        looks_as: Who looks at the test pairs, in the ledger; None = the folder's name.
        keep_journal: Leave the journal where it is.
        say: Told what is being done.
        **options: Further settings of the optimiser, such as `demos=2`.

    Raises:
        DeclarationError: Settings, pairs, splits or LMs are at fault.
    """
    settings = _settings(optimizer, budget, options)
    check_optimizer(settings, program)
    divided = (
        split_pairs(with_gold(pairs), settings)
        if splits is None
        else {name: list(splits.get(name, ())) for name in SPLITS}
    )
    check_splits(divided, settings.target)
    place = None if folder is None else Path(folder)
    kept_at = Path(journal) if journal is not None else None if place is None else place / "calls.jsonl"
    looks = Path(ledger) if ledger is not None else None if place is None else place.parent / "test_looks.jsonl"
    replies = Journal(kept_at)
    spending, tell = Budget(settings.budget), say or logger.info
    meter = Meter(spending, replies, heartbeat(spending, tell))
    try:
        work = meter_program(program, meter)
        check_prices(settings.budget, [*(p.lm for _, p in work.named_predictors()), reflection_lm, teacher_lm])
        plan = Plan(
            work, divided, settings, meter, _reflection(reflection_lm, work, meter),
            _teacher(teacher_lm, work, meter), tell,
        )  # fmt: skip
        result = _compile(plan, program)
        by = looks_as or (place.resolve().name if place is not None else "a program")
        if result.test is not None:
            result = replace(result, earlier_looks=note_look(looks, divided["test"], by))
        if place is not None:
            write_result(place, result, settings)
            result = replace(result, folder=place)
        if not keep_journal:
            replies.remove()
    finally:
        replies.close()
    return result


def _settings(optimizer: str | OptimizerSettings, budget: Any, options: Mapping[str, Any]) -> OptimizerSettings:
    own = from_mapping(OptimizerSettings, {"name": optimizer}) if isinstance(optimizer, str) else optimizer
    values = {name: getattr(own, name) for name in own.__dataclass_fields__} | dict(options)
    if budget is not None:
        values["budget"] = budget
    return from_mapping(OptimizerSettings, values)


def _reflection(given: Any, work: Any, meter: Meter) -> Any:
    """Returns the proposing LM: the one given, else the judge's, else the last predictor's."""
    predictors = [predictor for _, predictor in work.named_predictors()]
    judges = [predictor for predictor in predictors if getattr(predictor, "role", "") == "judge"]
    lm = given if given is not None else (judges or predictors)[-1].lm if predictors else None
    return None if lm is None else metered(lm, meter, retries=REFLECTION_RETRIES)


def _teacher(given: Any, work: Any, meter: Meter) -> Any:
    if given is None:
        return None
    teacher = work.deepcopy()
    bind_lms(teacher, {"default": metered(given, meter)})
    return teacher


def _compile(plan: Plan, original: Any) -> CompileResult:
    settings, budget = plan.settings, plan.meter.budget
    doubts = doubts_about(plan.splits)
    for doubt in doubts:
        plan.say(f"ATTENTION: {doubt}")
    plan.say(f"measuring the uncompiled program on {len(plan.splits['validation'])} validation pairs")
    began = budget.spent
    before = measured_on(plan, plan.program, "validation")
    base = Candidate("uncompiled", plan.program, before)
    if budget.refused:
        doubts = (
            *doubts,
            "the budget did not reach to measure the uncompiled program: what was not asked counts as wrong",
        )
    test, one = 2 * len(plan.splits.get("test", ())), _cost_of_a_run(plan, began)
    budget.reserve(**_times(one, len(plan.splits["validation"]) + test))
    found = search_candidates(plan)
    budget.reserve(**_times(one, test))
    candidates = [base, *measure_finalists(plan, found)]
    budget.release()
    best = max(candidates[1:], key=lambda one: value_of(one.validation, settings.target), default=None)
    validation = measure(before, best.validation if best else before, settings.target, seed=settings.seed)
    kept, reason = _verdict(settings, validation, best, budget.stopped)
    chosen = best.program if kept and best is not None else plan.program
    measured = _test(plan, chosen, kept) if test and budget.affords(**_times(one, test if kept else test / 2)) else None
    return CompileResult(
        program=unmetered(chosen, original),
        kept=kept,
        reason=reason,
        optimizer=settings.name,
        target=settings.target,
        candidates=tuple(candidates),
        chosen=best,
        validation=validation,
        test=measured,
        splits=plan.splits,
        spent=budget.spent,
        stopped=budget.stopped,
        doubts=doubts,
    )


def _cost_of_a_run(plan: Plan, before: Spent) -> dict[str, float]:
    """Returns what a run of the program costs by unit, from what measuring on validation has cost.

    Args:
        plan: The compilation.
        before: What was spent when the measuring began.
    """
    now, pairs = plan.meter.budget.spent, len(plan.splits["validation"])
    calls = now.calls - before.calls
    share = calls / (max(now.calls, 1) * pairs)
    return {
        "calls": calls / pairs, "tokens": now.tokens * share, "cost": now.cost * share, "minutes": now.minutes / pairs,
    }  # fmt: skip


def _times(one: Mapping[str, float], runs: float) -> dict[str, float]:
    return {unit: round(amount * runs, 9) for unit, amount in one.items()}


def _verdict(
    settings: OptimizerSettings, validation: Measured, best: Candidate | None, stopped: str | None
) -> tuple[bool, str]:
    gap = validation.difference
    if best is None:
        if stopped:
            return False, f"not kept: {stopped}, and no candidate was measured"
        return False, "the search found nothing but the uncompiled program"
    said = f"{gap.value:+.3f} in {settings.target} on validation" if gap.value is not None else "no value on validation"
    if gap.interval is not None:
        said += f" ({gap.interval.low:+.3f} to {gap.interval.high:+.3f}), {gap.finding}"
    if settings.keep == "always":
        return True, f"kept as asked: {said}"
    if gap.value is not None and gap.value > 0:
        return True, f"kept: {said}"
    return False, f"not kept: {said}"


def _test(plan: Plan, chosen: Any, kept: bool) -> Measured | None:
    refused = plan.meter.budget.refused
    plan.say(f"looking at the {len(plan.splits['test'])} test pairs")
    before = measured_on(plan, plan.program, "test")
    after = measured_on(plan, chosen, "test") if kept else before
    if plan.meter.budget.refused > refused:
        return None  # a half-measured test set would count what was not asked as wrong
    return measure(before, after, plan.settings.target, seed=plan.settings.seed)
