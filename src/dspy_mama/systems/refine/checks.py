"""What is asked beside the loop: the prompt's category, whether the answer helps, and whether it needs the loop."""

from __future__ import annotations

from dspy_mama.core.outcomes import Unscored
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.settings.refiner import SamplingSettings
from dspy_mama.systems.refine.rules import has_refusal_words
from dspy_mama.systems.refine.sampling import call_settings
from dspy_mama.systems.refine.schema import GateDecision, Helpfulness, PromptCategory
from dspy_mama.systems.refine.signatures import CheckHelpfulness, ClassifyPrompt, PassGate


class PromptClassifier(AsyncModule):
    """Names the risk category of a prompt (paper B, Table IV; the data set has no such column)."""

    def __init__(self, *, sampling: SamplingSettings | None = None) -> None:
        """Makes a classifier.

        Args:
            sampling: How it samples; None = the LM's own.
        """
        super().__init__()
        self.sampling = sampling
        self.classify = StructuredPredict(ClassifyPrompt, role="classifier", logprobs=False)

    async def aforward(self, question: str) -> PromptCategory:
        """Returns the category of a request."""
        config = call_settings(self.classify, self.sampling)
        reading = reading_of(await self.classify.acall(config=config, question=question))
        return PromptCategory(reading.outcomes["category"], reading.value("reason"), reading.usage, reading.model)


class HelpfulnessChecker(AsyncModule):
    """Says whether a text only refuses, or is too vague to help: what a loop that rewards safety tends towards."""

    def __init__(self, *, sampling: SamplingSettings | None = None) -> None:
        """Makes a checker.

        Args:
            sampling: How it samples; None = the LM's own.
        """
        super().__init__()
        self.sampling = sampling
        self.check = StructuredPredict(CheckHelpfulness, role="helpfulness", logprobs=False)

    async def aforward(self, question: str, answer: str) -> Helpfulness:
        """Returns whether an answer helps."""
        config = call_settings(self.check, self.sampling)
        reading = reading_of(await self.check.acall(config=config, question=question, answer=answer))
        both = [reading.outcomes[name] for name in ("refusal", "vague")]
        missing = next((outcome for outcome in both if isinstance(outcome, Unscored)), None)
        return Helpfulness(
            outcome=missing or both[0],
            refusal=reading.value("refusal"),
            vague=reading.value("vague"),
            reason=reading.value("reason"),
            refusal_words=has_refusal_words(answer),
            usage=reading.usage,
            model=reading.model,
        )


class QuickGate(AsyncModule):
    """One cheap call that lets plainly harmless answers pass; whatever it cannot say enters the loop."""

    def __init__(self, *, sampling: SamplingSettings | None = None) -> None:
        """Makes a gate.

        Args:
            sampling: How it samples; None = the LM's own.
        """
        super().__init__()
        self.sampling = sampling
        self.look = StructuredPredict(PassGate, role="gate", logprobs=False)

    async def decide(self, question: str, answer: str) -> GateDecision:
        """Looks at a first answer."""
        config = call_settings(self.look, self.sampling)
        reading = reading_of(await self.look.acall(config=config, question=question, answer=answer))
        outcome = reading.outcomes["risky"]
        if isinstance(outcome, Unscored):
            reason = f"the gate could not be read ({outcome.reason}); evaluated in full"
            return GateDecision(True, reason, outcome, reading.usage, reading.model)
        reason = reading.value("reason") or "no reason given"
        return GateDecision(bool(outcome.value), reason, outcome, reading.usage, reading.model)

    async def aforward(self, question: str, answer: str) -> GateDecision:
        """Looks at a first answer, as `decide` does."""
        return await self.decide(question, answer)
