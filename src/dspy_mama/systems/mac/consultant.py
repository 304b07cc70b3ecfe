"""The senior consultant: chooses which specialties sit on the panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dspy_mama.core.outcomes import Scored
from dspy_mama.lm.module import AsyncModule, at_temperature, lm_of
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.systems.mac.schema import SpecialtyChoice
from dspy_mama.systems.mac.signatures import ChooseSpecialties
from dspy_mama.systems.mac.specialties import SPECIALTIES, resolve_specialties


class Consultant(AsyncModule):
    """Chooses one specialty a doctor for a case, in one call.

    A name outside the list and a second mention of one are dropped; missing ones are filled in from the list, in its
    order. Both are recorded.
    """

    def __init__(self, *, doctors: int, allow_list: Sequence[str] = (), temperature: float | None = None) -> None:
        """Makes the consultant.

        Args:
            doctors: How many to choose.
            allow_list: Specialties to choose from; empty = the library's 38.
            temperature: 0 to 2; None = the LM's own.
        """
        super().__init__()
        self.doctors = doctors
        self.allowed = tuple(allow_list) or SPECIALTIES
        self.temperature = temperature
        self.choose = StructuredPredict(ChooseSpecialties, role="consultant", logprobs=False)

    async def aforward(self, case: str) -> SpecialtyChoice:
        """Returns the specialties.

        Args:
            case: Text of the case; untrusted.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        prediction = await self.choose.acall(
            case=case,
            allowed=", ".join(self.allowed),
            count=str(self.doctors),
            config=at_temperature(lm_of(self.choose), self.temperature),
            choices={"specialties": self.allowed},
        )
        reading = reading_of(prediction)
        outcome = reading.outcomes["specialties"]
        asked = tuple(outcome.value) if isinstance(outcome, Scored) else ()
        chosen, dropped, filled = resolve_specialties(asked, self.allowed, self.doctors)
        return SpecialtyChoice(chosen, asked, dropped, filled, outcome, reading.usage, reading.model)


class FixedSpecialties(AsyncModule):
    """The same specialties for every case, without an LM."""

    def __init__(self, specialties: Sequence[str]) -> None:
        """Keeps the specialties, one a doctor."""
        super().__init__()
        self.specialties = tuple(specialties)

    async def aforward(self, case: str) -> SpecialtyChoice:
        """Returns the specialties, whatever the case."""
        return SpecialtyChoice(self.specialties)


class NoSpecialties(AsyncModule):
    """The honest null: doctors without a specialty, the paper's standard."""

    async def aforward(self, case: str) -> Any:
        """Returns None."""
        return
