"""One answer of one model: asked directly, or with its reasoning written first."""

from __future__ import annotations

from typing import Any, Final

import dspy

from dspy_mama.lm.module import AsyncModule, at_temperature, bind_lms, check_lms, lm_of
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.systems.baselines.result import Attempt, BaselineResult, with_result

REASONING: Final = "reasoning"
REASONING_LIMIT: Final = 800
"""Characters of a chain of thought: some 200 tokens, so that the answer after it is not cut."""


def reasoned(signature: Any) -> Any:
    """Returns a signature whose first output is its reasoning; one that has such a field already stays as it is."""
    if REASONING in signature.output_fields:
        return signature
    desc = "think step by step: weigh what speaks for and against each answer before you settle on one"
    return signature.prepend(REASONING, dspy.OutputField(desc=desc, max_length=REASONING_LIMIT), type_=str)


class Direct(AsyncModule):
    """Asks once, for the signature's outputs alone.

    Example:
        ```python
        answer = Direct("question -> verdict: bool")(question="...")
        ```
    """

    def __init__(
        self, signature: Any, *, role: str = "solver", temperature: float | None = None, lm: Any = None
    ) -> None:
        """Makes the program.

        Args:
            signature: Any DSPy signature whose outputs `StructuredPredict` reads.
            role: Role whose LM answers.
            temperature: 0 to 2; None = the LM's own.
            lm: A `dspy.LM`; None = `dspy.settings.lm` at the call.

        Raises:
            DeclarationError: An output field has a type that cannot be read.
        """
        super().__init__()
        self.role = role
        self.temperature = temperature
        self.answer = StructuredPredict(self._form(dspy.ensure_signature(signature)), role=role)
        if lm is not None:
            self.answer.lm = lm

    def _form(self, signature: Any) -> Any:
        return signature

    def set_lms(self, lms: Any) -> Direct:
        """Binds LMs to the program's role and returns the program.

        Raises:
            DeclarationError: A role is unknown, or what is given for it is no LM.
        """
        check_lms(lms, (self.role,))
        bind_lms(self, lms)
        return self

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Answers.

        Args:
            **inputs: The signature's inputs.

        Returns:
            The signature's outputs; `result_of` and `reading_of` say what stands behind them.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        prediction = await self.answer.acall(config=at_temperature(lm_of(self.answer), self.temperature), **inputs)
        reading = reading_of(prediction)
        attempt = Attempt(1, "answer", reading, chosen=True)
        return with_result(prediction, BaselineResult(reading, (attempt,), "answer", {"solver": reading.usage}))


class ChainOfThought(Direct):
    """Asks once, with the reasoning written before the signature's outputs (Wei et al., 2022)."""

    def _form(self, signature: Any) -> Any:
        return reasoned(signature)
