"""The disease-knowledge task: what a model knows of a disease, one typed dimension at a time.

The paper has such a task but does not print its dimensions; these are ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import dspy

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.lm.module import AsyncModule, at_temperature, bind_lms, check_lms, lm_of
from dspy_mama.lm.predict import Reading, StructuredPredict, reading_of
from dspy_mama.lm.usage import CallUsage, total
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


class MergeEntries(dspy.Signature):
    """You supervise doctors who wrote entries of a handbook of rare diseases, each by themselves.

    Hold their entries against one another, name what they differ in, and write the one entry that stands: keep what is
    sound, drop what only one claims without ground, and leave no contradiction. Add nothing that none of them wrote.
    """

    disease: str = dspy.InputField(desc="name of the disease")
    heading: str = dspy.InputField(desc="what the entries are about")
    entries: str = dspy.InputField(desc="the doctors' entries, one a line")
    disagreement: str = dspy.OutputField(desc="what they differ in, or none", max_length=240)
    entry: str = dspy.OutputField(desc="the entry that stands, in full sentences", max_length=500)


@dataclass(frozen=True, slots=True)
class KnowledgeAnswer:
    """What a model says of a disease.

    Attributes:
        disease: Name of the disease.
        answers: Text per dimension, or why there is none.
        usage: What the calls cost.
        model: Model id as the server resolved it, or None where no reply came.
        method: `direct`, or `mac` for doctors under a supervisor.
    """

    disease: str
    answers: Mapping[Dimension, Outcome[str]]
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None
    method: Literal["direct", "mac"] = "direct"


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
        name = _named(disease)
        config = at_temperature(lm_of(self.state), self.temperature)
        asked = (self.state.acall(disease=name, heading=heading, config=config) for heading in _headings())
        readings = [reading_of(prediction) for prediction in await asyncio.gather(*asked)]
        return _answer(name, readings, total(reading.usage for reading in readings), "direct")


class KnowledgePanel(AsyncModule):
    """Several doctors write each entry by themselves, side by side; the supervisor makes one of them.

    The paper gives the knowledge task to its panel too, and does not say how: there is nothing to discuss until they
    agree, so that each entry is one call a doctor and one of the supervisor. (Doctors + 1) calls a dimension.
    """

    def __init__(
        self, doctors: int = 4, *, temperature: float | None = None, lms: Mapping[str, Any] | None = None
    ) -> None:
        """Makes the panel.

        Args:
            doctors: 2 to 5.
            temperature: 0 to 2; None = the LM's own. At 0 doctors of one LM write the same.
            lms: LM of `doctor`, `supervisor`, `doctor_1` to `doctor_5`, or `default`.

        Raises:
            DeclarationError: There are too few or too many doctors, a role is unknown, or what it is given is no LM.
        """
        super().__init__()
        if not 2 <= doctors <= 5:
            raise DeclarationError(f"doctors={doctors}: a panel has 2 to 5")
        self.doctors = [DiseaseExpert(temperature=temperature) for _ in range(doctors)]
        self.merge = StructuredPredict(MergeEntries, role="supervisor", logprobs=False)
        single = [f"doctor_{number}" for number in range(1, doctors + 1)]
        check_lms(lms or {}, ("doctor", "supervisor", *single, "grader"))
        bind_lms(self, lms or {})
        for role, doctor in zip(single, self.doctors, strict=True):
            if lms and role in lms:
                bind_lms(doctor, {"doctor": lms[role]})

    async def aforward(self, disease: str) -> KnowledgeAnswer:
        """Returns an entry per dimension.

        Args:
            disease: Name of the disease.

        Raises:
            DeclarationError: There is no name, or the LM's configuration is at fault.
        """
        name = _named(disease)
        written = await asyncio.gather(*(doctor.acall(disease=name) for doctor in self.doctors))
        merged = await asyncio.gather(
            *(
                self._merged(name, heading, [answer.answers[dimension] for answer in written])
                for dimension, heading in zip(get_args(Dimension), _headings(), strict=True)
            )
        )
        usage = total([*(answer.usage for answer in written), *(reading.usage for reading in merged)])
        return _answer(name, merged, usage, "mac")

    async def _merged(self, disease: str, heading: str, entries: Sequence[Outcome[str]]) -> Reading:
        """Returns the entry that stands; without any readable one it is missing for the doctors' reason."""
        lines = [
            f"Doctor {number}: {' '.join(entry.value.split())}"
            for number, entry in enumerate(entries, 1)
            if isinstance(entry, Scored)
        ]
        if not lines:
            missing = [entry for entry in entries if isinstance(entry, Unscored)]
            told = [entry for entry in missing if entry.kind != "infra"]
            return Reading({"entry": (told or missing)[0]})
        return reading_of(await self.merge.acall(disease=disease, heading=heading, entries="\n".join(lines)))


def _named(disease: str) -> str:
    if not isinstance(disease, str) or not disease.strip():
        raise DeclarationError("disease is empty: name one")
    return disease.strip()


def _headings() -> list[str]:
    return [f"{name}: {meaning}" for name, meaning in DIMENSIONS.items()]


def _answer(
    disease: str, readings: Sequence[Reading], usage: CallUsage, method: Literal["direct", "mac"]
) -> KnowledgeAnswer:
    answers = {name: reading.outcomes["entry"] for name, reading in zip(DIMENSIONS, readings, strict=True)}
    model = next((reading.model for reading in readings if reading.model), None)
    return KnowledgeAnswer(disease, answers, usage, model, method)


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
        "method": answer.method,
        "answers": {name: row(outcome) for name, outcome in answer.answers.items()},
        "usage": answer.usage.to_dict(),
        "model": answer.model,
    }
