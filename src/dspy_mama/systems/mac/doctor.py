"""A doctor on the panel: one diagnosis, what else is possible, which tests, and answers to the others."""

from __future__ import annotations

from dspy_mama.core.patient_case import Stage
from dspy_mama.lm.module import AsyncModule, at_temperature, lm_of
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.systems.mac.schema import Seat, Selection, Turn
from dspy_mama.systems.mac.signatures import SpeakAsDoctor, without_tests
from dspy_mama.systems.mac.transcript import Shown


class Doctor(AsyncModule):
    """Speaks once, from the case and what was said so far. Its state is one predictor of the role `doctor`."""

    def __init__(self, *, temperature: float | None = None, argument_characters: int = 320) -> None:
        """Makes the doctor.

        Args:
            temperature: 0 to 2; None = the LM's own.
            argument_characters: Length of an argument at most.
        """
        super().__init__()
        self.temperature = temperature
        signature = SpeakAsDoctor.with_updated_fields("argument", limit=argument_characters)
        self.speak = StructuredPredict(signature, role="doctor", logprobs=False)

    async def aforward(
        self, shown: Shown, seat: Seat, stage: Stage, *, number: int, round: int, selection: Selection | None = None
    ) -> Turn:
        """Returns the doctor's turn.

        Args:
            shown: Case and discussion.
            seat: The doctor's seat.
            stage: Stage of the case; tests are asked for in the primary one alone.
            number: Number of the turn.
            round: Round of the turn.
            selection: How the doctor got the floor.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        specialty = f", a specialist in {seat.specialty}" if seat.specialty else ""
        signature = self.speak.signature
        prediction = await self.speak.acall(
            signature=signature if stage == "primary" else without_tests(signature),
            config=at_temperature(lm_of(self.speak), self.temperature),
            case=shown.case,
            discussion=shown.discussion,
            you=f"{seat.name}{specialty}",
        )
        reading = reading_of(prediction)
        return Turn(
            number=number,
            round=round,
            speaker=seat.name,
            role="doctor",
            outcome=reading.outcomes["most_likely"],
            specialty=seat.specialty,
            argument=reading.value("argument"),
            differentials=tuple(reading.value("differentials") or ()),
            tests=tuple(reading.value("tests") or ()) if stage == "primary" else (),
            agrees=reading.value("agrees"),
            selection=selection,
            usage=reading.usage,
            model=reading.model,
        )
