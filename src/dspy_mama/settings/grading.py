"""How diagnoses are graded against the truth."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from dspy_mama.settings.strict import STRICT


@dataclass(frozen=True, config=STRICT)
class GradingSettings:
    """The grader (paper C: GPT-4o, checked by physicians). Its LM is that of the role `grader`.

    Attributes:
        kind: `lm` grades every diagnosis of a known truth as it comes; `none` leaves it to the matcher of names, and
            to a later `mama diagnose --grade RUN`.
        swap: Grade each answer twice, with truth and answer in both orders, a list of diagnoses also reversed.
        repeats: Independent gradings of each order, 1 to 9. Where gradings differ, the lower median counts.
        temperature: Sampling temperature, 0 to 2; None = the LM's own.
        synonyms: csv or jsonl with the columns `name` and `synonym`, for the matcher; None = spellings alone.
    """

    kind: Literal["lm", "none"] = "lm"
    swap: bool = True
    repeats: int = Field(default=1, ge=1, le=9)
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    synonyms: str | None = None
