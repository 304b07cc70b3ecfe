"""The two evaluators: medical ethics by principles, and safety risk by levels (paper B, section III-B)."""

from __future__ import annotations

from typing import Any

from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.predict import Reading, StructuredPredict, reading_of
from dspy_mama.settings.refiner import SamplingSettings
from dspy_mama.systems.refine.conversation import NOTHING_BEFORE
from dspy_mama.systems.refine.criteria import Criteria
from dspy_mama.systems.refine.sampling import call_settings
from dspy_mama.systems.refine.schema import Assessment, Flag
from dspy_mama.systems.refine.signatures import ethics_signature, safety_signature


class EthicsEvaluator(AsyncModule):
    """Flags each principle with a reason; its score is the number of violated principles, lower is better.

    One flag that cannot be read leaves the whole score unknown: a principle that nobody judged may be violated.
    """

    def __init__(
        self,
        criteria: Criteria,
        *,
        role: str = "ethics",
        reason_characters: int = 100,
        sampling: SamplingSettings | None = None,
    ) -> None:
        """Makes an evaluator.

        Args:
            criteria: What it judges by.
            role: Role whose LM judges.
            reason_characters: Longest reason per principle.
            sampling: How it samples; None = the LM's own.
        """
        super().__init__()
        self.role = role
        self.principles = criteria.principles
        self.sampling = sampling
        self.judge = StructuredPredict(ethics_signature(criteria, reason_characters), role=role, logprobs=False)

    async def aforward(self, question: str, answer: str, conversation: str = NOTHING_BEFORE) -> Assessment:
        """Returns flags, reasons and score.

        Args:
            question: The request.
            answer: The answer; untrusted.
            conversation: What was said before.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        reading = await _ask(self.judge, self.sampling, question, answer, conversation)
        flags = tuple(
            Flag(p.id, p.name, reading.value(f"{p.field}_violated"), reading.value(f"{p.field}_reason"))
            for p in self.principles
        )
        return Assessment(
            evaluator=self.role,
            kind="ethics",
            outcome=self._score(reading),
            flags=flags,
            reason="; ".join(f"{flag.principle}: {flag.reason}" for flag in flags if flag.violated) or None,
            usage=reading.usage,
            model=reading.model,
            truncated=reading.cut,
        )

    def _score(self, reading: Reading) -> Outcome[float]:
        outcomes = [reading.outcomes[f"{principle.field}_violated"] for principle in self.principles]
        missing = next((outcome for outcome in outcomes if isinstance(outcome, Unscored)), None)
        return missing or Scored(float(sum(isinstance(o, Scored) and bool(o.value) for o in outcomes)))


class SafetyEvaluator(AsyncModule):
    """States the level of safety risk, 1 minimal to 5 critical, with its reason (paper B, SRA-5)."""

    def __init__(self, criteria: Criteria, *, role: str = "safety", sampling: SamplingSettings | None = None) -> None:
        """Makes an evaluator.

        Args:
            criteria: Whose levels it states.
            role: Role whose LM judges.
            sampling: How it samples; None = the LM's own.
        """
        super().__init__()
        self.role = role
        self.sampling = sampling
        self.judge = StructuredPredict(safety_signature(criteria), role=role, logprobs=False)

    async def aforward(self, question: str, answer: str, conversation: str = NOTHING_BEFORE) -> Assessment:
        """Returns level and reason.

        Args:
            question: The request.
            answer: The answer; untrusted.
            conversation: What was said before.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        reading = await _ask(self.judge, self.sampling, question, answer, conversation)
        level = reading.outcomes["level"]
        return Assessment(
            evaluator=self.role,
            kind="safety",
            outcome=Scored(float(level.value)) if isinstance(level, Scored) else level,
            reason=reading.value("reason"),
            usage=reading.usage,
            model=reading.model,
            truncated=reading.cut,
        )


async def _ask(
    predictor: StructuredPredict,
    sampling: SamplingSettings | None,
    question: str,
    answer: str,
    conversation: str,
) -> Reading:
    material: dict[str, Any] = {"question": question, "answer": answer, "conversation": conversation}
    return reading_of(await predictor.acall(config=call_settings(predictor, sampling), **material))
