"""What compiling a program gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dspy_mama.core.cases import QAPair
from dspy_mama.optimize.budget import Spent
from dspy_mama.optimize.selection import Evaluation, compare
from dspy_mama.stats import Difference


@dataclass(frozen=True)
class Candidate:
    """A program that was tried.

    Attributes:
        name: Such as `gepa 2`, or `uncompiled`.
        program: The program.
        validation: Its audits of the validation pairs.
    """

    name: str
    program: Any = field(repr=False)
    validation: Evaluation = field(repr=False)


@dataclass(frozen=True)
class Measured:
    """Two programs on the same pairs.

    Attributes:
        before: The uncompiled program.
        after: The one that was chosen.
        difference: After minus before, in the target, with its paired interval.
    """

    before: Evaluation = field(repr=False)
    after: Evaluation = field(repr=False)
    difference: Difference

    @property
    def finding(self) -> str:
        """`higher`, `lower` or `not distinguishable`."""
        return self.difference.finding


def measure(before: Evaluation, after: Evaluation, target: str, *, seed: int = 0, resamples: int = 1000) -> Measured:
    """Compares two programs' audits of the same pairs."""
    return Measured(before, after, compare(before, after, target, seed=seed, resamples=resamples))


@dataclass(frozen=True)
class CompileResult:
    """A compiled program, and whether it is better.

    Attributes:
        program: The program to use: the compiled one if it was kept, else the uncompiled one; with its own LMs.
        kept: Whether the compiled program was kept.
        reason: Why, in a sentence.
        optimizer: Name of the optimiser.
        target: What was chosen by.
        candidates: Everything that was measured on validation, the uncompiled program first.
        chosen: The best candidate besides the uncompiled one, or None where the search found none.
        validation: Uncompiled and best candidate on the validation pairs.
        test: Uncompiled and kept program on the test pairs; None where there are none, nothing was kept, or the
            budget did not reach that far.
        splits: Pairs by split.
        spent: What it cost.
        stopped: Which budget ended the search, or None.
        folder: Where everything was written, or None.
        earlier_looks: How often these test pairs were looked at before, as far as the ledger knows.
        doubts: What these pairs cannot show, whatever was measured on them.
    """

    program: Any = field(repr=False)
    kept: bool
    reason: str
    optimizer: str
    target: str
    candidates: tuple[Candidate, ...] = field(repr=False)
    chosen: Candidate | None = field(repr=False)
    validation: Measured
    test: Measured | None
    splits: Mapping[str, Sequence[QAPair]] = field(repr=False)
    spent: Spent
    stopped: str | None = None
    folder: Path | None = None
    earlier_looks: int = 0
    doubts: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the outcome as plain data, without texts."""
        return {
            "optimizer": self.optimizer,
            "target": self.target,
            "kept": self.kept,
            "reason": self.reason,
            "stopped": self.stopped,
            "spent": self.spent.to_dict(),
            "splits": {name: len(pairs) for name, pairs in self.splits.items()},
            "candidates": [candidate_row(one, self.target) for one in self.candidates],
            "chosen": self.chosen.name if self.chosen else None,
            "validation": measured_row(self.validation, self.target),
            "test": measured_row(self.test, self.target) if self.test else None,
            "test_looked_at_before": self.earlier_looks,
            "doubts": list(self.doubts),
        }


def candidate_row(candidate: Candidate, target: str) -> dict[str, Any]:
    """Returns a candidate's name and value, with its bootstrap interval."""
    return {"name": candidate.name, **value_row(candidate.validation, target)}


def value_row(evaluation: Evaluation, target: str) -> dict[str, Any]:
    """Returns the target's value on some pairs, with its bootstrap interval."""
    found = evaluation.estimate(target)
    bounds = None if found.interval is None else [found.interval.low, found.interval.high]
    return {"value": found.value, "ci95": bounds, "n": len(evaluation.labels)}


def measured_row(measured: Measured, target: str) -> dict[str, Any]:
    """Returns two programs' values and their paired difference."""
    gap = measured.difference
    return {
        "before": value_row(measured.before, target),
        "after": value_row(measured.after, target),
        "difference": {
            "value": gap.value,
            "ci95": None if gap.interval is None else [gap.interval.low, gap.interval.high],
            "finding": gap.finding,
        },
    }
