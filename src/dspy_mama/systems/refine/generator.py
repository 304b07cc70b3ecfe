"""The generator: writes the first answer, and rewrites it by a plan."""

from __future__ import annotations

from typing import Any

from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.core.reading import strip_reasoning
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.predict import DECLINED, StructuredPredict, reading_of
from dspy_mama.settings.refiner import SamplingSettings
from dspy_mama.systems.refine.conversation import NOTHING_BEFORE
from dspy_mama.systems.refine.cut_text import text_of_cut
from dspy_mama.systems.refine.sampling import call_settings
from dspy_mama.systems.refine.schema import Draft, Origin
from dspy_mama.systems.refine.signatures import RefineReply, WriteReply


class ReplyGenerator(AsyncModule):
    """Answers a request, and mends the answer (paper B, generator role)."""

    def __init__(
        self, *, role: str = "generator", characters: int = 1200, sampling: SamplingSettings | None = None
    ) -> None:
        """Makes a generator.

        Args:
            role: Role whose LM writes.
            characters: Longest answer.
            sampling: How it samples; None = the LM's own.
        """
        super().__init__()
        self.role = role
        self.sampling = sampling
        self.write = StructuredPredict(_bounded(WriteReply, characters), role=role, logprobs=False)
        self.rewrite = StructuredPredict(_bounded(RefineReply, characters), role=role, logprobs=False)

    async def generate(self, question: str, conversation: str = NOTHING_BEFORE) -> Draft:
        """Returns the first answer.

        Args:
            question: The request.
            conversation: What was said before.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        return await self._ask(self.write, "generated", question=question, conversation=conversation)

    async def refine(self, question: str, answer: str, plan: str, conversation: str = NOTHING_BEFORE) -> Draft:
        """Returns the answer rewritten by a plan.

        Args:
            question: The request.
            answer: The answer so far.
            plan: What must change.
            conversation: What was said before.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        return await self._ask(
            self.rewrite, "refined", question=question, answer=answer, plan=plan, conversation=conversation
        )

    async def aforward(self, question: str, conversation: str = NOTHING_BEFORE) -> Draft:
        """Returns the first answer, as `generate` does."""
        return await self.generate(question, conversation)

    async def _ask(self, predictor: StructuredPredict, origin: Origin, **material: Any) -> Draft:
        reading = reading_of(await predictor.acall(config=call_settings(predictor, self.sampling), **material))
        outcome, incomplete = _written(reading.outcomes["reply"])
        return Draft(outcome, origin, self.role, reading.usage, reading.model, reading.cut, incomplete)


def _bounded(signature: Any, characters: int) -> Any:
    return signature.with_updated_fields("reply", limit=characters)


def _written(outcome: Outcome[str]) -> tuple[Outcome[str], bool]:
    """Returns the text, and whether it breaks off.

    An empty answer is no answer; one that declines in plain words, without the form that was asked for, is one, and
    so is what a cut reply holds of it.
    """
    if isinstance(outcome, Unscored) and outcome.reason == DECLINED:
        said, _ = strip_reasoning(outcome.raw or "")
        return (Scored(said) if said and "{" not in said else outcome), False
    if isinstance(outcome, Unscored) and outcome.kind == "truncated":
        found = text_of_cut(outcome.raw or "")
        return (Scored(found[0]), found[1]) if found else (outcome, False)
    if isinstance(outcome, Scored) and not outcome.value.strip():
        return Unscored("parse", "field 'reply': the answer is empty", ""), False
    return outcome, False
