"""What a baseline tried on its way to an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import dspy

from dspy_mama.lm.predict import Reading
from dspy_mama.lm.usage import CallUsage, total

By = Literal["answer", "vote", "refined"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer that was considered.

    Attributes:
        number: From 1, in the order in which they were asked for.
        kind: `answer` (the only one), `path` (self-consistency) or `candidate` (self-refine).
        reading: What was read of it.
        group: Self-consistency: number of the first path with the same vote, or None where there is no vote.
        chosen: Whether its texts are those of the result.
        score: Self-refine: the critic's score, or None where it could not be read.
        critique: Self-refine: what the critic said.
        kept: Self-refine: whether it took the place of the one before; None elsewhere.
    """

    number: int
    kind: Literal["answer", "path", "candidate"]
    reading: Reading
    group: int | None = None
    chosen: bool = False
    score: int | None = None
    critique: str | None = None
    kept: bool | None = None


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """How a baseline came to its answer.

    Attributes:
        reading: The answer, as `reading_of` gives it too; its usage is the sum over all parts.
        attempts: Everything that was considered.
        by: How the answer was found.
        usage: What was spent, by part: `solver`, and `critic` or `merger` where they were asked.
        notes: What did not go as planned, one line each.
    """

    reading: Reading
    attempts: tuple[Attempt, ...]
    by: By
    usage: Mapping[str, CallUsage] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def with_result(prediction: dspy.Prediction, result: BaselineResult) -> dspy.Prediction:
    """Returns the prediction with its result behind it, and a reading whose usage is all that was spent."""
    reading = replace(result.reading, usage=total(result.usage.values()))
    result = replace(result, reading=reading)
    object.__setattr__(prediction, "_reading", reading)
    object.__setattr__(prediction, "_result", result)
    return prediction


def result_of(prediction: Any) -> BaselineResult:
    """Returns the `BaselineResult` behind a baseline's prediction."""
    result: BaselineResult = prediction._result
    return result
