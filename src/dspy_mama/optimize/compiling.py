"""Compiles a program on gold pairs: search on train, choose on validation, look once at test."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.stratified import SPLITS, pairs_hash, read_splits, stratified_split
from dspy_mama.lm.module import bind_lms
from dspy_mama.optimize.artifact import program_state
from dspy_mama.optimize.artifact_hashes import prompt_hashes
from dspy_mama.optimize.budget import Budget
from dspy_mama.optimize.examples import shown_questions, training_examples
from dspy_mama.optimize.journal import Journal
from dspy_mama.optimize.ledger import note_look
from dspy_mama.optimize.metering import Meter, heartbeat, meter_program, metered
from dspy_mama.optimize.optimisers import Search, check_optimizer, run_optimiser, stages_of
from dspy_mama.optimize.result import Candidate, CompileResult, Measured, measure
from dspy_mama.optimize.selection import Evaluation, evaluate
from dspy_mama.optimize.thresholds import fit_thresholds
from dspy_mama.scoring.reward import Reward, class_weights
from dspy_mama.settings import BudgetSettings, OptimizerSettings, from_mapping

logger = logging.getLogger(__name__)

FINALISTS: Final = 5
"""Candidates that are measured on validation by the corpus-level target; more would choose by chance."""

REFLECTION_RETRIES: Final = 5
"""Repeats after 429 and 5xx of LMs that no gate stands before."""

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
        say: Told what is being done.
        **options: Further settings of the optimiser, such as `demos=2`.

    Raises:
        DeclarationError: Settings, pairs, splits or LMs are at fault.
    """
    settings = _settings(optimizer, budget, options)
    check_optimizer(settings, program)
    gold = [pair for pair in pairs if any(label is not None for label in pair.gold.values())]
    divided = split_pairs(gold, settings) if splits is None else {name: list(splits.get(name, ())) for name in SPLITS}
    check_splits(divided)
    place = None if folder is None else Path(folder)
    kept_at = Path(journal) if journal is not None else None if place is None else place / "calls.jsonl"
    looks = Path(ledger) if ledger is not None else None if place is None else place.parent / "test_looks.jsonl"
    replies = Journal(kept_at)
    spending, tell = Budget(settings.budget), say or logger.info
    meter = Meter(spending, replies, heartbeat(spending, tell))
    try:
        work = meter_program(program, meter)
        plan = Plan(
            work, divided, settings, meter, _reflection(reflection_lm, work, meter),
            _teacher(teacher_lm, work, meter), tell,
        )  # fmt: skip
        result = _compile(plan, program)
        by = looks_as or (place.resolve().name if place is not None else "a program")
        if result.test is not None:
            result = replace(result, earlier_looks=note_look(looks, divided["test"], by))
        if place is not None:
            from dspy_mama.optimize.files import write_result

            write_result(place, result, settings)
            result = replace(result, folder=place)
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


def split_pairs(pairs: Sequence[QAPair], settings: OptimizerSettings) -> dict[str, list[QAPair]]:
    """Divides gold pairs as the settings say: by file, or stratified by label and hash of the id."""
    own = settings.split
    if own.file is not None:
        return read_splits(own.file, pairs)
    test = 1 - own.train - own.validation
    return stratified_split(pairs, {"train": own.train, "validation": own.validation, "test": test}, own.salt)


def check_splits(splits: Mapping[str, Sequence[QAPair]]) -> None:
    """Refuses splits that leak, or leave nothing to learn from or to choose on.

    Raises:
        DeclarationError: A pair is in two splits, or a split is empty.
    """
    for name in ("train", "validation"):
        if not splits.get(name):
            raise DeclarationError(
                f"the {name} split is empty: compiling needs gold pairs to learn from and to choose on"
            )
    seen: dict[str, str] = {}
    for name, pairs in splits.items():
        for pair in pairs:
            if seen.setdefault(pair.id, name) != name:
                raise DeclarationError(f"pair {pair.id!r} is in {seen[pair.id]} and in {name}: its label would leak")


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
    plan.say(f"measuring the uncompiled program on {len(plan.splits['validation'])} validation pairs")
    before = _measured(plan, plan.program, "validation")
    base = Candidate("uncompiled", plan.program, before)
    _hold_back(plan)
    found = _search(plan)
    budget.release()
    candidates = [base, *_finalists(plan, found)]
    best = max(candidates[1:], key=lambda one: _value(one.validation, settings.target), default=None)
    validation = measure(before, best.validation if best else before, settings.target, seed=settings.seed)
    kept, reason = _verdict(settings, validation, best)
    chosen = best.program if kept and best is not None else plan.program
    test = _test(plan, chosen, kept)
    return CompileResult(
        program=unmetered(chosen, original),
        kept=kept,
        reason=reason,
        optimizer=settings.name,
        target=settings.target,
        candidates=tuple(candidates),
        chosen=best,
        validation=validation,
        test=test,
        splits=plan.splits,
        spent=budget.spent,
        stopped=budget.stopped,
    )


def _measured(plan: Plan, program: Any, split: str) -> Evaluation:
    return evaluate(program, plan.splits[split], plan.settings.threads)


def _value(evaluation: Evaluation, target: str) -> float:
    value = evaluation.value(target)
    return -1.0 if value != value else value


def _hold_back(plan: Plan) -> None:
    """Keeps back what measuring the result will cost, judged by what the first measuring cost."""
    first, sizes = plan.meter.budget.spent, {name: len(pairs) for name, pairs in plan.splits.items()}
    runs = sizes["validation"] + 2 * sizes["test"]
    share = runs / sizes["validation"]
    calls = first.calls + first.from_journal  # a resumed run has measured already, from its journal
    per_call = 0 if not first.calls else 1 / first.calls
    plan.meter.budget.reserve(
        calls=round(calls * share),
        tokens=first.tokens * per_call * calls * share,
        cost=first.cost * per_call * calls * share,
        minutes=first.minutes * share,
    )


def _search(plan: Plan) -> list[tuple[str, Any]]:
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
            plan.meter.budget.exhausted,
        )
        programs = _distinct(run_optimiser(stage, search), plan.program)[:FINALISTS]
        tried = [(f"{stage} {number}", program) for number, program in enumerate(programs, 1)]
        found += tried
        start = _best_of(plan, [("start", start), *tried])
    return found


def _best_of(plan: Plan, tried: Sequence[tuple[str, Any]]) -> Any:
    if len(stages_of(plan.settings.name)) == 1:
        return tried[0][1]
    plan.meter.budget.release()
    measured = [(program, _measured(plan, program, "validation")) for _, program in tried]
    return max(measured, key=lambda one: _value(one[1], plan.settings.target))[0]


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


def _finalists(plan: Plan, found: Sequence[tuple[str, Any]]) -> list[Candidate]:
    candidates, seen = [], {signature_of(plan.program)}
    for name, program in found:
        mark = signature_of(program)
        if mark in seen:
            continue
        seen.add(mark)
        if plan.meter.budget.exhausted() is not None:
            plan.say(f"{name}: not measured, {plan.meter.budget.exhausted()}")
            continue
        plan.say(f"measuring {name} on the validation pairs")
        candidates.append(Candidate(name, program, _measured(plan, program, "validation")))
    return candidates


def _verdict(settings: OptimizerSettings, validation: Measured, best: Candidate | None) -> tuple[bool, str]:
    gap = validation.difference
    if best is None:
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
    if not plan.splits.get("test") or plan.meter.budget.exhausted() is not None:
        return None
    plan.say(f"looking at the {len(plan.splits['test'])} test pairs")
    before = _measured(plan, plan.program, "test")
    after = _measured(plan, chosen, "test") if kept else before
    if plan.meter.budget.exhausted() is not None:
        return None  # a half-measured test set would count what was not asked as wrong
    return measure(before, after, plan.settings.target, seed=plan.settings.seed)


def unmetered(program: Any, original: Any) -> Any:
    """Returns a program with the LMs of the one it was made from."""
    own = program.deepcopy()
    lms = {name: predictor.lm for name, predictor in original.named_predictors()}
    for name, predictor in own.named_predictors():
        predictor.lm = lms[name]
    return own


def origin_of(result: CompileResult, settings: OptimizerSettings) -> dict[str, Any]:
    """Returns what an artifact keeps of how it was made: settings, hashes of the data, figures; no text."""
    from dspy_mama.settings import to_mapping

    return {
        "optimizer": to_mapping(settings),
        "data": {name: pairs_hash(pairs) for name, pairs in result.splits.items()},
        "evidence": dict(result.program.retriever.describe()),
        "validation": result.to_dict()["validation"],
        "kept": result.kept,
    }


def compiled_state(result: CompileResult, settings: OptimizerSettings, *, demos: Any = "keep") -> dict[str, Any]:
    """Returns the artifact of a compilation as plain data."""
    return program_state(result.program, origin=origin_of(result, settings), demos=demos)
