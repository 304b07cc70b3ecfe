"""Does a cited passage support the note that cites it? An optional check by an LM, after the audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import dspy

from dspy_mama.core.outcomes import Outcome
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.lm.usage import CallUsage

Support = Literal["supports", "partly", "unrelated", "contradicts"]
SUPPORT_SCALE: Final[tuple[str, ...]] = get_args(Support)


class CheckCitation(dspy.Signature):
    """You check whether a passage supports a reviewer's note that cites it.

    Look only at what the passage says; your own knowledge does not count, and whether the note is right is not asked.
    Say "supports" if the passage states what the note relies on, "partly" if it states some of it, "unrelated" if it is
    about something else, "contradicts" if it states the opposite.
    """

    note: str = dspy.InputField(desc="the reviewer's note on a chatbot's answer")
    passage: str = dspy.InputField(desc="the passage that the note cites")
    findings: str = dspy.OutputField(desc="the words of the passage that bear on the note, or 'none'", max_length=240)
    support: Support = dspy.OutputField(desc="what the passage does for the note")


@dataclass(frozen=True, slots=True)
class CitationSupport:
    """What an LM thinks of one citation.

    Attributes:
        outcome: `Scored` with one of `SUPPORT_SCALE`, or why there is none.
        findings: The words that decide it, or None.
        usage: What the call cost.
        model: Model id as the server resolved it, or None where no reply came.
    """

    outcome: Outcome[str]
    findings: str | None = None
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None


class CitationChecker(AsyncModule):
    """Checks one citation at a time, in a fresh context."""

    def __init__(self, lm: Any = None) -> None:
        """Makes the checker.

        Args:
            lm: A `dspy.LM`; None = `dspy.settings.lm` at the call.
        """
        super().__init__()
        self.check = StructuredPredict(CheckCitation, role="judge", logprobs=False)
        if lm is not None:
            self.check.lm = lm

    async def aforward(self, note: str, passage: str) -> CitationSupport:
        """Returns what the passage does for the note.

        Args:
            note: A verification's reason.
            passage: Text of the cited passage.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        reading = reading_of(await self.check.acall(note=note, passage=passage))
        return CitationSupport(reading.outcomes["support"], reading.value("findings"), reading.usage, reading.model)
