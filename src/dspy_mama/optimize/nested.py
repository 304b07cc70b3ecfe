"""Nested cross-validation: every pair is a test pair once, of a program that was compiled without it.

The outer folds measure the recipe; the program to use is compiled afterwards on all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.stratified import stratified_folds, stratified_split
from dspy_mama.optimize.budget import UNITS, Spent
from dspy_mama.optimize.compiling import compile_program
from dspy_mama.optimize.ledger import note_look
from dspy_mama.optimize.result import CompileResult, Measured, measure, measured_row
from dspy_mama.optimize.selection import evaluation_of
from dspy_mama.optimize.splitting import check_splits, with_gold
from dspy_mama.settings import BudgetSettings, OptimizerSettings


@dataclass(frozen=True)
class NestedResult:
    """What nested cross-validation gave.

    Attributes:
        folds: A compilation per outer fold; its test pairs are the fold's.
        measured: Uncompiled and kept programs over the test pairs of all folds, pooled; None where a fold's budget
            did not reach to its test pairs.
        final: The compilation on all pairs, without a test set: its quality is what the folds measured.
        earlier_looks: How often these pairs were looked at before, as far as the ledger knows.
    """

    folds: tuple[CompileResult, ...]
    measured: Measured | None
    final: CompileResult
    earlier_looks: int = 0

    @property
    def spent(self) -> Spent:
        """What all compilations cost together."""
        return sum((fold.spent for fold in self.folds), self.final.spent)

    def to_dict(self) -> dict[str, Any]:
        """Returns the outcome as plain data, without texts."""
        pooled = None if self.measured is None else measured_row(self.measured, self.final.target)
        parts = [*self.folds, self.final]
        return {
            **self.final.to_dict(),
            "test": pooled,
            "test_looked_at_before": self.earlier_looks,
            "spent": self.spent.to_dict(),
            "stopped": next((part.stopped for part in parts if part.stopped), None),
            "doubts": list(dict.fromkeys(doubt for part in parts for doubt in part.doubts)),
            "folds": [fold.to_dict() for fold in self.folds],
        }


def fold_splits(pairs: Sequence[QAPair], settings: OptimizerSettings) -> list[dict[str, list[QAPair]]]:
    """Returns train, validation and test pairs per outer fold; the inner split is stratified like the outer one."""
    own = settings.split
    shares = inner_shares(settings)
    return [
        {**stratified_split(fold["train"], shares, f"{own.salt}/{number}"), "test": fold["test"]}
        for number, fold in enumerate(stratified_folds(pairs, own.folds, own.salt))
    ]


def inner_shares(settings: OptimizerSettings) -> dict[str, float]:
    """Returns the shares of train and validation where the test set is given otherwise."""
    own = settings.split
    both = own.train + own.validation
    return {"train": own.train / both, "validation": own.validation / both}


def compile_nested(
    program: Any,
    pairs: Sequence[QAPair],
    settings: OptimizerSettings,
    *,
    journal: str | Path | None = None,
    ledger: str | Path | None = None,
    looks_as: str = "a program",
    keep_journal: bool = False,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> NestedResult:
    """Compiles a program once per outer fold and once on all pairs.

    Args:
        program: A `RiskAuditor` with its LMs.
        pairs: Pairs with gold labels; those without any are left out.
        settings: The optimiser, with `split.folds`; the budget is shared out equally.
        journal: File of replies; each compilation has its own beside it.
        ledger: File of looks at test sets; None = nowhere.
        looks_as: Who looks at the pairs, in the ledger.
        keep_journal: Leave the journals where they are; `remove_journals` deletes them.
        say: Told what is being done.
        **options: `reflection_lm` and `teacher_lm`.

    Raises:
        DeclarationError: Settings, pairs or LMs are at fault.
    """
    if settings.split.folds < 2:
        raise DeclarationError("nested cross-validation needs optimizer.split.folds of 2 or more")
    gold = with_gold(pairs)
    shared = replace(settings, budget=_share(settings.budget, settings.split.folds + 1))
    results: list[CompileResult] = []
    final_splits = stratified_split(gold, inner_shares(settings), settings.split.salt)
    plans: list[Mapping[str, Sequence[QAPair]]] = [*fold_splits(gold, settings), final_splits]
    for splits in plans:
        check_splits(splits, settings.target)  # all of them, before the first fold is paid for
    for number, splits in enumerate(plans):
        title = f"fold {number + 1}" if number < settings.split.folds else "all pairs"
        if say is not None:
            say(f"{title}: {len(splits['train'])} pairs to learn from")
        own = None if journal is None else f"{journal}.{number}"
        results.append(
            compile_program(program, gold, shared, splits=splits, journal=own, keep_journal=True, say=say, **options)
        )
    if journal is not None and not keep_journal:
        remove_journals(journal)
    *folds, final = results
    pooled = _pooled(folds, settings)
    looks = 0 if pooled is None else note_look(None if ledger is None else Path(ledger), gold, looks_as)
    return NestedResult(tuple(folds), pooled, final, looks)


def remove_journals(journal: str | Path) -> None:
    """Deletes the journal of a compilation, and those of its folds."""
    path = Path(journal)
    path.unlink(missing_ok=True)
    for own in path.parent.glob(f"{path.name}.[0-9]*"):
        own.unlink(missing_ok=True)


def _share(budget: BudgetSettings, parts: int) -> BudgetSettings:
    """Returns an equal part of a budget; at least one call and token, which then measures nothing."""
    shares = {unit: None if getattr(budget, unit) is None else getattr(budget, unit) / parts for unit in UNITS}
    whole = {unit: None if shares[unit] is None else max(1, int(shares[unit])) for unit in ("calls", "tokens")}  # type: ignore[arg-type]
    return BudgetSettings(**{**shares, **whole})


def _pooled(folds: Sequence[CompileResult], settings: OptimizerSettings) -> Measured | None:
    tests = [fold.test for fold in folds]
    if any(test is None for test in tests):
        return None
    before, after = (
        evaluation_of([record for test in tests for record in getattr(test, side).records])
        for side in ("before", "after")
    )
    return measure(before, after, settings.target, seed=settings.seed)
