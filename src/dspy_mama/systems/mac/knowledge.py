"""The disease-knowledge task: what a model, or a panel of doctors, knows of a disease, one side of it at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from dspy_mama.core.disease_knowledge import DIMENSIONS, Dimension
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.lm.module import AsyncModule, at_temperature, bind_lms, check_lms, lm_of
from dspy_mama.lm.predict import Reading, StructuredPredict, reading_of
from dspy_mama.lm.usage import CallUsage, total
from dspy_mama.settings.panel import PanelRole
from dspy_mama.systems.baselines import Direct
from dspy_mama.systems.baselines.result import result_of
from dspy_mama.systems.mac.knowledge_schema import Draft, Entry, KnowledgeAnswer
from dspy_mama.systems.mac.knowledge_signatures import MergeEntries, StateKnowledge

_ROLES = get_args(PanelRole)


class DiseaseExpert(AsyncModule):
    """A single model says what it knows of a disease, one answer a dimension, side by side, by any baseline.

    Example:
        ```python
        known = DiseaseExpert(lms={"default": dspy.LM("openai/gpt-4o")})(disease="Fabry disease")
        known.answers["aetiology"]
        ```
    """

    def __init__(
        self,
        make: Callable[[Any], Any] | None = None,
        *,
        method: str = "direct",
        temperature: float | None = None,
        lms: Mapping[str, Any] | None = None,
    ) -> None:
        """Makes the expert.

        Args:
            make: Makes a baseline of a signature, such as `lambda s: ChainOfThought(s, role="doctor")`; None = one
                direct answer. Entries are prose and have no majority: self-consistency is of no use here.
            method: Name of the baseline in records.
            temperature: 0 to 2, of the direct answer; None = the LM's own.
            lms: LM of `doctor`, or `default`; other roles of the panel are passed over.

        Raises:
            DeclarationError: A role is unknown, or what is given for it is no LM.
        """
        super().__init__()
        self.method = method
        self.state = make(StateKnowledge) if make else Direct(StateKnowledge, role="doctor", temperature=temperature)
        if lms:
            check_lms(lms, (*_ROLES, "grader"))
            bind_lms(self, lms)

    async def aforward(self, disease: str) -> KnowledgeAnswer:
        """Returns an entry per dimension.

        Args:
            disease: Name of the disease.

        Raises:
            DeclarationError: There is no name, or the LM's configuration is at fault.
        """
        name = _named(disease)
        asked = (self.state.acall(disease=name, heading=heading) for heading in _headings())
        results = [result_of(prediction) for prediction in await asyncio.gather(*asked)]
        spent: dict[str, CallUsage] = {}
        for result in results:
            for part, usage in result.usage.items():
                role = "doctor" if part == "solver" else part
                spent[role] = spent.get(role, CallUsage()) + usage
        entries = {
            dimension: Entry(
                result.reading.outcomes["entry"],
                result.by,
                drafts=_drafts(result.attempts),
                usage=total(result.usage.values()),
            )
            for dimension, result in zip(get_args(Dimension), results, strict=True)
        }
        model = next((result.reading.model for result in results if result.reading.model), None)
        notes = [f"{d}: {note}" for d, result in zip(DIMENSIONS, results, strict=True) for note in result.notes]
        models = {"doctor": model} if model else {}
        return KnowledgeAnswer(name, entries, spent, models=models, method=self.method, notes=tuple(notes))


def _drafts(attempts: Sequence[Any]) -> tuple[Draft, ...]:
    if len(attempts) < 2 and not any(attempt.critique for attempt in attempts):
        return ()
    return tuple(
        Draft(f"{a.kind} {a.number}", a.reading.outcomes["entry"], a.score, a.critique, a.kept, a.reading.usage)
        for a in attempts
    )


class KnowledgePanel(AsyncModule):
    """Several doctors write each entry by themselves, side by side; the supervisor makes one of them.

    The paper gives the knowledge task to its panel too, and does not say how: there is nothing to discuss until they
    agree, so that each entry is one call a doctor and one of the supervisor (without one, of the concluder):
    (doctors + 1) calls a dimension. Doctors have no specialties here, for these are chosen by the case.
    """

    def __init__(
        self,
        doctors: int = 4,
        *,
        supervisor: bool = True,
        temperature: float | None = None,
        merge_temperature: float | None = None,
        lms: Mapping[str, Any] | None = None,
    ) -> None:
        """Makes the panel.

        Args:
            doctors: 2 to 5.
            supervisor: Whether the LM of `supervisor` makes one entry of them; else that of `concluder`.
            temperature: Of the doctors, 0 to 2; None = the LM's own. At 0 doctors of one LM write the same.
            merge_temperature: Of whoever makes one entry of theirs.
            lms: LM of `doctor`, `supervisor`, `doctor_1` to `doctor_5`, or `default`.

        Raises:
            DeclarationError: There are too few or too many doctors, a role is unknown, or what it is given is no LM.
        """
        super().__init__()
        if not 2 <= doctors <= 5:
            raise DeclarationError(f"doctors={doctors}: a panel has 2 to 5")
        self.doctors = [DiseaseExpert(temperature=temperature) for _ in range(doctors)]
        self.merge_temperature = merge_temperature
        self.merge = StructuredPredict(MergeEntries, role="supervisor" if supervisor else "concluder", logprobs=False)
        single = [f"doctor_{number}" for number in range(1, doctors + 1)]
        check_lms(lms or {}, (*_ROLES, *single, "grader"))
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
                self._merged(name, heading, [answer.entries[dimension] for answer in written])
                for dimension, heading in zip(get_args(Dimension), _headings(), strict=True)
            )
        )
        entries = {d: entry for d, (entry, _) in zip(get_args(Dimension), merged, strict=True)}
        readings = [reading for _, reading in merged if reading is not None]
        own = {f"Doctor {n}": answer.usage["doctor"] for n, answer in enumerate(written, 1)}
        role = self.merge.role
        spent = {"doctor": total(own.values())}
        spent |= {role: total(reading.usage for reading in readings)} if readings else {}
        return KnowledgeAnswer(name, entries, spent, own, self._models(written, readings), "mac", _lost(entries))

    def _models(self, written: Sequence[KnowledgeAnswer], readings: Sequence[Reading]) -> dict[str, str]:
        doctors = {f"doctor_{n}": answer.models["doctor"] for n, answer in enumerate(written, 1) if answer.models}
        models = {"doctor": next(iter(doctors.values()))} if doctors else {}
        models |= doctors if len(set(doctors.values())) > 1 else {}
        merger = next((reading.model for reading in readings if reading.model), None)
        return models | ({self.merge.role: merger} if merger else {})

    async def _merged(self, disease: str, heading: str, written: Sequence[Entry]) -> tuple[Entry, Reading | None]:
        """Returns the entry that stands; without any readable one it is missing for the doctors' reason."""
        drafts = tuple(Draft(f"Doctor {n}", entry.outcome, usage=entry.usage) for n, entry in enumerate(written, 1))
        spent = total(draft.usage for draft in drafts)
        lines = [f"{d.by}: {' '.join(d.outcome.value.split())}" for d in drafts if isinstance(d.outcome, Scored)]
        if not lines:
            missing = [entry.outcome for entry in written if isinstance(entry.outcome, Unscored)]
            told = [outcome for outcome in missing if outcome.kind != "infra"]
            return Entry((told or missing)[0], drafts=drafts, usage=spent), None
        reading = reading_of(
            await self.merge.acall(
                disease=disease,
                heading=heading,
                entries="\n".join(lines),
                config=at_temperature(lm_of(self.merge), self.merge_temperature),
            )
        )
        entry = Entry(
            reading.outcomes["entry"], self.merge.role, reading.value("disagreement"), drafts, spent + reading.usage
        )
        return entry, reading


def _lost(entries: Mapping[Dimension, Entry]) -> tuple[str, ...]:
    lost = [(name, sum(isinstance(d.outcome, Unscored) for d in entry.drafts)) for name, entry in entries.items()]
    return tuple(f"{name}: {count} doctor(s) could not be read" for name, count in lost if count)


def _named(disease: str) -> str:
    if not isinstance(disease, str) or not disease.strip():
        raise DeclarationError("disease is empty: name one")
    return disease.strip()


def _headings() -> list[str]:
    return [f"{name}: {meaning}" for name, meaning in DIMENSIONS.items()]
