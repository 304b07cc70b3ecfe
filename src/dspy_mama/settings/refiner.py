"""System B: thresholds, budget and roles of the evaluation loop."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from dspy_mama.settings.strict import STRICT

SamplingRole = Annotated[
    str,
    Field(
        pattern=r"^(default|planner|helpfulness|classifier|gate|generator(_[1-5])?|ethics(_[1-9])?|safety(_[1-9])?)$"
    ),
]
"""`default`, or a role of the loop; one of several is numbered, such as `ethics_2`."""


@dataclass(frozen=True, config=STRICT)
class SamplingSettings:
    """How a role samples; what a model refuses is left out of its calls, and the record says so.

    Attributes:
        temperature: 0 to 2; None = the LM's own.
        top_p: Nucleus mass in (0, 1]; None = the LM's own.
        max_tokens: Limit of new tokens; None = the LM's own.
    """

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=16)


@dataclass(frozen=True, config=STRICT)
class RefinerSettings:
    """The loop (paper B, Algorithm 1).

    Attributes:
        name: Name of this choice.
        criteria: Criteria packs, joined in their order: names that ship (`ama`, `oncology`, `paediatrics`,
            `emergency`) or paths of yaml files.
        ama_threshold: Violated principles that are still acceptable, at least 0.
        sra_threshold: Highest acceptable level of safety risk, 1 to 4: 5 would accept every text.
        mandatory: Violated principles from which a text must be revised whatever else is said.
        max_iterations: Assessments at most, each followed by a revision unless it accepts.
        final_check: Assess the text of the last revision once more, reported apart; off = the paper's way, which
            returns it unassessed.
        generators: Generators side by side, 1 to 5; the candidate with the best consensus goes on.
        ethics_evaluators: Ethics evaluators side by side, 1 to 9.
        safety_evaluators: Safety evaluators side by side, 1 to 9.
        cut_replies: What becomes of replies that are cut at the token limit. `revise`: they are asked for once more
            with twice the limit; a text that still breaks off is judged, never accepted, and rewritten. `keep`: the
            limit is one for all, as published; such a text is the answer, may be accepted, and is
            marked for review.
        merge: What several evaluators of a kind come to: the `worst` score, or their `mean`.
        helpfulness: Ask whether the returned text is only a refusal or too vague to help.
        classify: Ask for the prompt's risk category (emergency, diagnostic, therapeutic, preventive).
        gate: Which texts enter the loop: `none` = all; `lm` = those that one cheap call does not pass; `auditor` =
            those that system A does not find safe in every domain. A text that passes is not assessed: `accepted` is
            None and, since it is what the gate was set for, `needs_review` is false.
        auditor: System A judges every version as a third evaluator, with evidence.
        reply_characters: Longest answer, in characters.
        reason_characters: Longest reason per principle, in characters.
        sampling: Sampling by role, one of several numbered such as `ethics_2`; `default` for those without their own.
    """

    name: str = "default"
    criteria: tuple[str, ...] = Field(default=("ama",), min_length=1)
    ama_threshold: float = Field(default=2, ge=0)
    sra_threshold: float = Field(default=2, ge=1, lt=5)
    mandatory: float = Field(default=6, ge=0)
    max_iterations: int = Field(default=5, ge=1, le=50)
    final_check: bool = True
    generators: int = Field(default=1, ge=1, le=5)
    ethics_evaluators: int = Field(default=1, ge=1, le=9)
    safety_evaluators: int = Field(default=1, ge=1, le=9)
    cut_replies: Literal["revise", "keep"] = "revise"
    merge: Literal["worst", "mean"] = "worst"
    helpfulness: bool = True
    classify: bool = True
    gate: Literal["none", "lm", "auditor"] = "none"
    auditor: bool = False
    reply_characters: Annotated[int, Field(ge=80)] = 1200
    reason_characters: Annotated[int, Field(ge=20)] = 100
    sampling: dict[SamplingRole, SamplingSettings] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses a budget at which what must be revised would already be acceptable."""
        if self.mandatory <= self.ama_threshold:
            raise ValueError(
                f"mandatory={self.mandatory:g} must lie above ama_threshold={self.ama_threshold:g}: a text cannot be "
                "acceptable and have to be revised"
            )
