"""An LM grades diagnoses, tests and knowledge on the paper's scales, more than once and in both orders."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.lm.module import AsyncModule, at_temperature, bind_lms, check_lms, lm_of
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.lm.repeats import for_repeat
from dspy_mama.lm.usage import CallUsage, total
from dspy_mama.settings.grading import GradingSettings
from dspy_mama.systems.mac.grading_signatures import (
    GradeDiagnosis,
    GradeKnowledge,
    GradePossible,
    GradeTests,
    swapped,
)
from dspy_mama.systems.mac.schema import outcome_name

Order = Literal["truth_first", "answer_first"]

ROLE: Final = "grader"
CASE_LIMIT: Final = 8000
"""Characters of a case that the grader of tests reads, some 2,000 tokens; what is left out is said in its prompt."""


@dataclass(frozen=True, slots=True)
class GradeReading:
    """One grading.

    Attributes:
        order: Which of truth and answer the grader read first.
        repeat: 0-based index of the repeat.
        outcome: The level, or why there is none.
        reason: The grader's reason, or None.
        usage: What it cost.
        model: Model id as the server resolved it, or None.
    """

    order: Order
    repeat: int
    outcome: Outcome[int]
    reason: str | None = None
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Grade:
    """What the gradings of one answer come to.

    Attributes:
        outcome: Lower median of the levels that could be read; the first fault where none could.
        readings: Every grading.
        by: `grader`; `rule` where nothing had to be asked; `same` where the answer is one that was graded already.
        reason: Reason of a grading with that level, or the rule.
    """

    outcome: Outcome[int]
    readings: tuple[GradeReading, ...] = ()
    by: Literal["grader", "rule", "same"] = "grader"
    reason: str | None = None

    @property
    def agreement(self) -> float | None:
        """Share of pairs of gradings with the same level; None with fewer than two."""
        levels = _levels(self.readings)
        pairs = [(one, two) for place, one in enumerate(levels) for two in levels[place + 1 :]]
        return sum(one == two for one, two in pairs) / len(pairs) if pairs else None

    @property
    def usage(self) -> CallUsage:
        """What the gradings cost."""
        return total(reading.usage for reading in self.readings)


def _levels(readings: Sequence[GradeReading]) -> list[int]:
    return [reading.outcome.value for reading in readings if isinstance(reading.outcome, Scored)]


def settle(readings: Sequence[GradeReading]) -> Grade:
    """Returns what gradings come to: the lower median, since between two levels the better one is not certain."""
    levels = sorted(_levels(readings))
    if not levels:
        fault = next(reading.outcome for reading in readings)
        return Grade(fault, tuple(readings))
    level = levels[(len(levels) - 1) // 2]
    reason = next((r.reason for r in readings if isinstance(r.outcome, Scored) and r.outcome.value == level), None)
    return Grade(Scored(level), tuple(readings), "grader", reason)


class Grader(AsyncModule):
    """Grades on the Bond scale (5, 4, 3, 2, 0), the tests' Likert scale and the knowledge's, blind to the method."""

    def __init__(self, settings: GradingSettings | None = None, lms: Mapping[str, Any] | None = None) -> None:
        """Makes the grader.

        Args:
            settings: Orders, repeats, temperature; None = the defaults.
            lms: LM of the role `grader`, or `default`; None = `dspy.settings.lm` at the call.

        Raises:
            DeclarationError: What is given for the role is no LM.
        """
        super().__init__()
        self.settings = settings or GradingSettings()
        for name, signature in (("diagnosis", GradeDiagnosis), ("possible", GradePossible), ("tests", GradeTests)):
            setattr(self, name, StructuredPredict(signature, role=ROLE))
            setattr(self, f"{name}_swapped", StructuredPredict(swapped(signature), role=ROLE))
        self.knowledge = StructuredPredict(GradeKnowledge, role=ROLE)
        if lms:
            self.set_lms(lms)

    def set_lms(self, lms: Mapping[str, Any]) -> Grader:
        """Binds the LM of `grader`, or `default`, and returns the grader.

        Raises:
            DeclarationError: A role is unknown, or what is given for it is no LM.
        """
        known = {role: lm for role, lm in lms.items() if role in (ROLE, "default")}
        check_lms(known, (ROLE,))
        bind_lms(self, known)
        return self

    async def grade_most_likely(self, truth: str, answer: str) -> Grade:
        """Grades the most likely diagnosis on the Bond scale."""
        return await self._both("diagnosis", truth, [answer])

    async def grade_possible(self, truth: str, answers: Sequence[str]) -> Grade:
        """Grades the closest of several diagnoses (the most likely one among them) on the Bond scale."""
        return await self._both("possible", truth, answers)

    async def grade_tests(self, truth: str, tests: Sequence[str], case: str) -> Grade:
        """Grades recommended tests on their Likert scale; no test at all is of no use, and nobody is asked."""
        if not tests:
            return Grade(Scored(1), (), "rule", "no test was recommended")
        left_out = len(case) - CASE_LIMIT
        shown = f"{case[:CASE_LIMIT]} [{left_out} more characters are left out]" if left_out > 0 else case
        return await self._both("tests", truth, tests, case=shown)

    async def grade_knowledge(self, disease: str, dimension: str, answer: str) -> Grade:
        """Grades what an answer says of one side of a disease; there is one order, since nothing can be swapped."""
        inputs = {"disease": disease, "dimension": dimension, "answer": answer}
        asked = [self._once(self.knowledge, "truth_first", n, inputs) for n in range(self.settings.repeats)]
        return settle(await asyncio.gather(*asked))

    async def _both(self, name: str, truth: str, answers: Sequence[str], **more: str) -> Grade:
        orders: list[tuple[Order, Any, Sequence[str]]] = [("truth_first", getattr(self, name), answers)]
        if self.settings.swap:
            orders.append(("answer_first", getattr(self, f"{name}_swapped"), answers[::-1]))
        asked = [
            self._once(predictor, order, repeat, {**more, "truth": truth, "answer": "\n".join(listed)})
            for repeat in range(self.settings.repeats)
            for order, predictor, listed in orders
        ]
        return settle(await asyncio.gather(*asked))

    async def _once(self, predictor: Any, order: Order, repeat: int, inputs: Mapping[str, str]) -> GradeReading:
        lm = lm_of(predictor)
        options: dict[str, Any] = {"config": at_temperature(lm, self.settings.temperature)}
        if repeat and lm is not None:
            options["lm"] = for_repeat(lm, repeat)
        reading = reading_of(await predictor.acall(**inputs, **options))
        found = reading.outcomes["score"]
        outcome: Outcome[int] = found if isinstance(found, Unscored) else Scored(int(found.value))
        return GradeReading(order, repeat, outcome, reading.value("reason"), reading.usage, reading.model)


def grade_record(grade: Grade) -> dict[str, Any]:
    """Returns a grade as plain data."""
    missing = grade.outcome if isinstance(grade.outcome, Unscored) else None
    return {
        "outcome": outcome_name(grade.outcome),
        "score": grade.outcome.value if isinstance(grade.outcome, Scored) else None,
        "error": missing.reason if missing else None,
        "by": grade.by,
        "reason": grade.reason,
        "agreement": grade.agreement,
        "readings": [_reading_record(reading) for reading in grade.readings],
    }


def _reading_record(reading: GradeReading) -> dict[str, Any]:
    missing = reading.outcome if isinstance(reading.outcome, Unscored) else None
    return {
        "order": reading.order,
        "repeat": reading.repeat,
        "outcome": outcome_name(reading.outcome),
        "score": reading.outcome.value if isinstance(reading.outcome, Scored) else None,
        "error": missing.reason if missing else None,
        "reason": reading.reason,
    }
