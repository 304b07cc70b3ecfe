"""Who speaks next, once everybody was heard."""

from __future__ import annotations

from collections.abc import Sequence

from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.lm.module import AsyncModule, at_temperature, lm_of
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.systems.mac.rules import is_opening, next_in_order, supervisor_is_due
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
    """The supervisor names the next doctor; after a doctor's turn an LM chooses among the others.

    First everybody has the floor once, in order: before that there is nothing to choose by. (AutoGen's group chat
    chooses from the first turn on.) After as many doctors' turns as there are doctors the supervisor sums up. A
    choice that cannot be read, or of somebody who does not exist, falls back to the next in order. Each choice by an
    LM is a call of its own, and its cost is counted under `speaker`.
    """

    def __init__(self, order: Sequence[str], *, allow_repeat: bool = False, temperature: float | None = None) -> None:
        """Makes the chooser.

        Args:
            order: The doctors, then the supervisor where there is one.
            allow_repeat: Whether whoever spoke last may be chosen.
            temperature: 0 to 2; None = the LM's own.
        """
        super().__init__()
        self.order = tuple(order)
        self.allow_repeat = allow_repeat
        self.temperature = temperature
        self.choose = StructuredPredict(with_speakers(ChooseSpeaker, self.order), role="speaker", logprobs=False)

    def candidates(self, turns: Sequence[Turn]) -> tuple[str, ...]:
        """Returns whom an LM may choose; nobody where the rules leave no choice."""
        opening, led = is_opening(self.order, turns), bool(turns) and turns[-1].speaker == SUPERVISOR
        if opening or led or supervisor_is_due(self.order, turns):
            return ()
        free = tuple(name for name in self.order if self.allow_repeat or name != turns[-1].speaker)
        return free if len(free) > 1 else ()

    async def aforward(self, turns: Sequence[Turn], shown: Shown | None, roster: str) -> Selection:
        """Returns the next speaker.

        Args:
            turns: The discussion so far.
            shown: The discussion as the chooser sees it, without the case; needed where there are `candidates`.
            roster: Who sits on the panel.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        following = next_in_order(self.order, turns)
        if free := self.candidates(turns):
            return await self._ask(free, following, shown, roster)
        if is_opening(self.order, turns):
            return Selection(following)
        if turns[-1].speaker != SUPERVISOR:
            return Selection(SUPERVISOR if supervisor_is_due(self.order, turns) else following)
        named = turns[-1].next_speaker
        if named in self.order:
            return Selection(str(named), "supervisor", named, Scored(str(named)))
        return Selection(following, "fallback", None, Unscored("parse", "the supervisor named no doctor who exists"))

    async def _ask(self, free: tuple[str, ...], following: str, shown: Shown | None, roster: str) -> Selection:
        prediction = await self.choose.acall(
            signature=with_speakers(self.choose.signature, free),
            discussion=shown.discussion if shown else "",
            doctors=roster,
            config=at_temperature(lm_of(self.choose), self.temperature),
        )
        reading = reading_of(prediction)
        outcome = reading.outcomes["next_speaker"]
        if isinstance(outcome, Scored):
            return Selection(outcome.value, "speaker", outcome.value, outcome, reading.usage, reading.model)
        return Selection(following, "fallback", None, outcome, reading.usage, reading.model)
