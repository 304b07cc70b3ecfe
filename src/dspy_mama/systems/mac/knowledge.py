"""The disease-knowledge task: what a model knows of a disease, one typed dimension at a time.

The paper has such a task but does not print its dimensions; these are ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import dspy

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Outcome, Unscored
from dspy_mama.lm.module import AsyncModule, at_temperature, bind_lms, check_lms, lm_of
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.lm.usage import CallUsage
from dspy_mama.systems.mac.schema import outcome_name

Dimension = Literal["definition", "aetiology", "presentation", "diagnosis", "management", "prognosis"]

DIMENSIONS: Final[Mapping[Dimension, str]] = {
    "definition": "what the disease is, and which group it belongs to",
    "aetiology": "its cause, inheritance and mechanism",
    "presentation": "its signs and symptoms, and when they begin",
    "diagnosis": "the findings and tests that prove it, and what it is told apart from",
    "management": "how it is treated and followed up",
    "prognosis": "its course, complications and life expectancy",
}
"""What is asked of a disease."""


class StateKnowledge(dspy.Signature):
    """You are a doctor who writes an entry of a handbook of rare diseases.

    State what is known of the disease under the heading that you are given, and nothing beyond that heading. Say so
    where something is not known or you are not sure; invent no figures.
    """

    disease: str = dspy.InputField(desc="name of the disease")
    heading: str = dspy.InputField(desc="what to write about")
    entry: str = dspy.OutputField(desc="the entry, in full sentences", max_length=500)


@dataclass(frozen=True, slots=True)
class KnowledgeAnswer:
    """What a model says of a disease.

    Attributes:
        disease: Name of the disease.
        answers: Text per dimension, or why there is none.
        usage: What the calls cost.
        model: Model id as the server resolved it, or None where no reply came.
    """

    disease: str
    answers: Mapping[Dimension, Outcome[str]]
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None


class DiseaseExpert(AsyncModule):
    """Says what it knows of a disease, one call a dimension, side by side. Asks the LM of the role `doctor`."""

    def __init__(self, *, temperature: float | None = None, lms: Mapping[str, Any] | None = None) -> None:
        """Makes the expert.

        Args:
            temperature: 0 to 2; None = the LM's own.
            lms: LM of `doctor`, or `default`.
        """
        super().__init__()
        self.temperature = temperature
        self.state = StructuredPredict(StateKnowledge, role="doctor", logprobs=False)
        if lms:
            check_lms(lms, ("doctor", "grader"))
            bind_lms(self, lms)

    async def aforward(self, disease: str) -> KnowledgeAnswer:
        """Returns an entry per dimension.

        Args:
            disease: Name of the disease.

        Raises:
            DeclarationError: There is no name, or the LM's configuration is at fault.
        """
        if not isinstance(disease, str) or not disease.strip():
            raise DeclarationError("disease is empty: name one")
        config = at_temperature(lm_of(self.state), self.temperature)
        names = get_args(Dimension)
        predictions = await asyncio.gather(
            *(
                self.state.acall(disease=disease.strip(), heading=f"{name}: {DIMENSIONS[name]}", config=config)
                for name in names
            )
        )
        readings = [reading_of(prediction) for prediction in predictions]
        usage = CallUsage()
        for reading in readings:
            usage = usage + reading.usage
        answers = {name: reading.outcomes["entry"] for name, reading in zip(names, readings, strict=True)}
        model = next((reading.model for reading in readings if reading.model), None)
        return KnowledgeAnswer(disease.strip(), answers, usage, model)


def knowledge_record(answer: KnowledgeAnswer) -> dict[str, Any]:
    """Returns an answer as plain data."""

    def row(outcome: Outcome[str]) -> dict[str, Any]:
        lost = isinstance(outcome, Unscored)
        return {
            "outcome": outcome_name(outcome),
            "text": None if isinstance(outcome, Unscored) else outcome.value,
            "error": outcome.reason if lost else None,  # type: ignore[union-attr]
        }

    return {
        "disease": answer.disease,
        "answers": {name: row(outcome) for name, outcome in answer.answers.items()},
        "usage": answer.usage.to_dict(),
        "model": answer.model,
    }
