"""The supervisor: sums up, names what is open, and says by a typed flag whether there is consensus."""

from __future__ import annotations

from dspy_mama.core.outcomes import Unscored
from dspy_mama.core.patient_case import Stage
from dspy_mama.lm.module import AsyncModule, at_temperature, lm_of
from dspy_mama.lm.predict import Reading, StructuredPredict, reading_of
from dspy_mama.systems.mac.schema import SUPERVISOR, Selection, Turn
from dspy_mama.systems.mac.signatures import SuperviseDiscussion, with_speakers, without_tests
from dspy_mama.systems.mac.transcript import Shown


class Supervisor(AsyncModule):
    """Speaks once. Nothing but its typed flag is ever read as consensus or as its absence."""

    def __init__(self, *, doctors: tuple[str, ...] = (), temperature: float | None = None) -> None:
        """Makes the supervisor.

        Args:
            doctors: Names of the doctors, one of which it names as the next speaker; empty = it names nobody.
            temperature: 0 to 2; None = the LM's own.
        """
        super().__init__()
        self.temperature = temperature
        self.names_next = bool(doctors)
        signature = with_speakers(SuperviseDiscussion, doctors) if doctors else SuperviseDiscussion
        self.sum_up = StructuredPredict(signature, role="supervisor", logprobs=False)

    async def aforward(
        self, shown: Shown, roster: str, stage: Stage, *, number: int, round: int, selection: Selection | None = None
    ) -> Turn:
        """Returns the supervisor's turn; without a readable flag and diagnosis it could not be read.

        Args:
            shown: Case and discussion.
            roster: Who sits on the panel.
            stage: Stage of the case.
            number: Number of the turn.
            round: Round of the turn.
            selection: How the supervisor got the floor.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        signature = self.sum_up.signature
        prediction = await self.sum_up.acall(
            signature=signature if stage == "primary" else without_tests(signature),
            config=at_temperature(lm_of(self.sum_up), self.temperature),
            case=shown.case,
            discussion=shown.discussion,
            doctors=roster,
        )
        reading = reading_of(prediction)
        flag = reading.outcomes["consensus"]
        return Turn(
            number=number,
            round=round,
            speaker=SUPERVISOR,
            role="supervisor",
            outcome=flag if isinstance(flag, Unscored) else reading.outcomes["most_likely"],
            disagreement=reading.value("disagreement"),
            differentials=tuple(reading.value("differentials") or ()),
            tests=tuple(reading.value("tests") or ()) if stage == "primary" else (),
            consensus=reading.value("consensus"),
            accepted=False,
            next_speaker=self._next(reading),
            selection=selection,
            usage=reading.usage,
            model=reading.model,
        )

    def _next(self, reading: Reading) -> str | None:
        return reading.value("next_speaker") if self.names_next else None
