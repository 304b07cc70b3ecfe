"""Who speaks next, once everybody was heard."""

from __future__ import annotations

from collections.abc import Sequence

from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.lm.module import AsyncModule, at_temperature, lm_of
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.systems.mac.rules import is_opening, next_in_order
from dspy_mama.systems.mac.schema import SUPERVISOR, Selection, Turn
from dspy_mama.systems.mac.signatures import ChooseSpeaker, with_speakers
from dspy_mama.systems.mac.transcript import Shown


class RoundRobin(AsyncModule):
    """A fixed order, without an LM."""

    def __init__(self, order: Sequence[str]) -> None:
        """Keeps the order: the doctors, then the supervisor where there is one."""
        super().__init__()
        self.order = tuple(order)

    async def aforward(self, turns: Sequence[Turn], shown: Shown | None, roster: str) -> Selection:
        """Returns whoever follows the last speaker."""
        return Selection(next_in_order(self.order, turns))


class AutoSpeaker(AsyncModule):
    """The supervisor names the next doctor; after a doctor's turn an LM chooses among all, repeats allowed.

    First everybody has the floor once, in order: before that there is nothing to choose by. (AutoGen's group chat
    chooses from the first turn on.) A choice that cannot be read, or of somebody who does not exist, falls back to the
    next in order. Each choice by an LM is a call of its own, and its cost is counted under `speaker`.
    """

    def __init__(self, order: Sequence[str], *, temperature: float | None = None) -> None:
        """Makes the chooser.

        Args:
            order: The doctors, then the supervisor where there is one.
            temperature: 0 to 2; None = the LM's own.
        """
        super().__init__()
        self.order = tuple(order)
        self.temperature = temperature
        self.choose = StructuredPredict(with_speakers(ChooseSpeaker, self.order), role="speaker", logprobs=False)

    def asks(self, turns: Sequence[Turn]) -> bool:
        """Tells whether the next choice is an LM call."""
        return not is_opening(self.order, turns) and turns[-1].speaker != SUPERVISOR

    async def aforward(self, turns: Sequence[Turn], shown: Shown | None, roster: str) -> Selection:
        """Returns the next speaker.

        Args:
            turns: The discussion so far.
            shown: The discussion as the chooser sees it, without the case; needed where `asks` says so.
            roster: Who sits on the panel.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        following = next_in_order(self.order, turns)
        if is_opening(self.order, turns):
            return Selection(following)
        if not self.asks(turns):
            named = turns[-1].next_speaker
            if named in self.order:
                return Selection(str(named), "supervisor", named, Scored(str(named)))
            why = Unscored("parse", "the supervisor named no doctor who exists")
            return Selection(following, "fallback", None, why)
        prediction = await self.choose.acall(
            discussion=shown.discussion if shown else "",
            doctors=roster,
            config=at_temperature(lm_of(self.choose), self.temperature),
        )
        reading = reading_of(prediction)
        outcome = reading.outcomes["next_speaker"]
        if isinstance(outcome, Scored):
            return Selection(outcome.value, "speaker", outcome.value, outcome, reading.usage, reading.model)
        return Selection(following, "fallback", None, outcome, reading.usage, reading.model)
