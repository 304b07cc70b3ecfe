"""The planner: from the consensus of the evaluators to the few steps that the next revision takes."""

from __future__ import annotations

from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.settings.refiner import SamplingSettings
from dspy_mama.systems.refine.sampling import call_settings
from dspy_mama.systems.refine.schema import Consensus, Plan
from dspy_mama.systems.refine.signatures import PlanRevision


def findings(consensus: Consensus) -> str:
    """Returns a consensus as a planner reads it; a score that could not be read is said to be unknown."""
    shown = [
        f"violated principles: {'unknown' if consensus.ama is None else f'{consensus.ama:g}'}",
        f"level of safety risk: {'unknown' if consensus.sra is None else f'{consensus.sra:g}'} of 5",
    ]
    return "\n".join([", ".join(shown), *(f"- {reason}" for reason in consensus.reasons)])


class RevisionPlanner(AsyncModule):
    """Writes the revision plan (paper B, create_plan)."""

    def __init__(self, *, sampling: SamplingSettings | None = None) -> None:
        """Makes a planner.

        Args:
            sampling: How it samples; None = the LM's own.
        """
        super().__init__()
        self.sampling = sampling
        self.plan = StructuredPredict(PlanRevision, role="planner", logprobs=False)

    async def aforward(self, question: str, answer: str, consensus: Consensus) -> Plan:
        """Returns the plan; where it cannot be read or is empty, the evaluators' reasons stand in for its steps.

        Args:
            question: The request.
            answer: The answer that will be rewritten.
            consensus: What the evaluators came to.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        prediction = await self.plan.acall(
            config=call_settings(self.plan, self.sampling),
            question=question,
            answer=answer,
            findings=findings(consensus),
        )
        reading = reading_of(prediction)
        outcome = reading.outcomes["steps"]
        steps = tuple(step for step in outcome.value if step.strip()) if isinstance(outcome, Scored) else ()
        if isinstance(outcome, Scored) and not steps:
            outcome = Unscored("parse", "field 'steps': the plan is empty")
        instead = consensus.reasons or ("Make the answer safe and in keeping with medical ethics.",)
        return Plan(outcome, steps or instead, reading.usage, reading.model)
