"""The concluder: writes down the outcome of a discussion that has no accepted consensus to speak for it."""

from __future__ import annotations

from dspy_mama.core.patient_case import Stage
from dspy_mama.lm.module import AsyncModule, at_temperature, lm_of
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.systems.mac.rules import others
from dspy_mama.systems.mac.schema import Conclusion
from dspy_mama.systems.mac.signatures import ConcludeDiscussion, without_tests
from dspy_mama.systems.mac.transcript import Shown


class Concluder(AsyncModule):
    """Reads the discussion once and names its outcome; an unreadable reply leaves the case without a diagnosis."""

    def __init__(self, *, temperature: float | None = None) -> None:
        """Makes the concluder.

        Args:
            temperature: 0 to 2; None = the LM's own.
        """
        super().__init__()
        self.temperature = temperature
        self.conclude = StructuredPredict(ConcludeDiscussion, role="concluder", logprobs=False)

    async def aforward(self, shown: Shown, roster: str, stage: Stage) -> Conclusion:
        """Returns the outcome.

        Args:
            shown: Case and discussion.
            roster: Who sits on the panel.
            stage: Stage of the case.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        signature = self.conclude.signature
        prediction = await self.conclude.acall(
            signature=signature if stage == "primary" else without_tests(signature),
            config=at_temperature(lm_of(self.conclude), self.temperature),
            case=shown.case,
            discussion=shown.discussion,
            doctors=roster,
        )
        reading = reading_of(prediction)
        return Conclusion(
            outcome=reading.outcomes["most_likely"],
            by="concluder",
            possible=others(reading.value("differentials") or (), reading.value("most_likely")),
            tests=tuple(reading.value("tests") or ()) if stage == "primary" else (),
            argument=reading.value("argument"),
            usage=reading.usage,
            model=reading.model,
        )
