"""Self-refine: answer, criticise, rewrite, and keep what is not worse (Madaan et al., 2023)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import dspy

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.lm.module import AsyncModule, at_temperature, bind_lms, check_lms, lm_of
from dspy_mama.lm.predict import Reading, StructuredPredict, reading_of
from dspy_mama.lm.usage import CallUsage
from dspy_mama.systems.baselines.result import Attempt, BaselineResult, with_result

SCALE: Final[dict[int, str]] = {
    50: "nothing to improve",
    40: "right in the main, small gaps",
    30: "partly right, important gaps",
    20: "mostly wrong or unsupported",
    0: "wrong, or no answer to the task",
}
"""The critic's score (the paper's code asks for 50, 40, 30, 20 or 0); the words are ours."""

BEST: Final = max(SCALE)
DRAFT, CRITIQUE, SCORE = "draft", "critique", "draft_score"


def critic_form(signature: Any) -> Any:
    """Returns the signature that criticises an answer to another signature."""
    scale = "\n".join(f"- {score}: {meaning}" for score, meaning in SCALE.items())
    form = dspy.Signature(
        {name: (info.annotation, info) for name, info in signature.input_fields.items()},
        "You review a draft answer to the task below. Hold it against the given material alone: name what it leaves "
        "out, what it gets wrong and what it cannot know, then score it. Do not write a new answer.\n\n"
        f"The task was:\n{signature.instructions}\n\nScores:\n{scale}",
    )
    form = form.append(DRAFT, dspy.InputField(desc="the draft to review"), type_=str)
    said = dspy.OutputField(desc="what to change and why; name what to keep", max_length=400)
    form = form.append(CRITIQUE, said, type_=str)
    kinds: Any = Literal[50, 40, 30, 20, 0]
    return form.append(SCORE, dspy.OutputField(desc="score of the draft"), type_=kinds)


def rewrite_form(signature: Any) -> Any:
    """Returns the signature that answers again, with an earlier draft and what was said of it."""
    form = signature.append_instructions(
        "You have answered before. Write a better answer: follow the critique where the material supports it, and keep "
        "what was right."
    )
    form = form.append(DRAFT, dspy.InputField(desc="your earlier answer"), type_=str)
    return form.append(CRITIQUE, dspy.InputField(desc="what was said of it"), type_=str)


class SelfRefine(AsyncModule):
    """Answers, has its answer criticised, rewrites it, and keeps each rewrite that scores no worse.

    A rewrite whose score cannot be read was not shown to be no worse, and is dropped. It ends after `rounds`
    rewrites, at the best score, or when there is no critique to follow; the result is the answer that was kept last.
    """

    def __init__(
        self,
        signature: Any,
        *,
        rounds: int = 4,
        temperature: float | None = 0.7,
        role: str = "solver",
        lm: Any = None,
    ) -> None:
        """Makes the program.

        Args:
            signature: Any DSPy signature whose outputs `StructuredPredict` reads.
            rounds: Rewrites at most, at least 1.
            temperature: 0 to 2, of answers and critiques; None = the LM's own.
            role: Role whose LM answers and criticises.
            lm: A `dspy.LM`; None = `dspy.settings.lm` at the call.

        Raises:
            DeclarationError: There are no rounds, or the signature has fields of the names that this program needs.
        """
        super().__init__()
        if rounds < 1:
            raise DeclarationError(f"rounds={rounds}: self-refine needs at least one")
        plain = dspy.ensure_signature(signature)
        if taken := sorted({DRAFT, CRITIQUE, SCORE} & set(plain.fields)):
            raise DeclarationError(f"self-refine needs the field name(s) {', '.join(taken)}; rename the signature's")
        self.role, self.rounds, self.temperature = role, rounds, temperature
        self.answer = StructuredPredict(plain, role=role)
        self.criticise = StructuredPredict(critic_form(plain), role=role, logprobs=False)
        self.rewrite = StructuredPredict(rewrite_form(plain), role=role)
        if lm is not None:
            bind_lms(self, {role: lm})

    def set_lms(self, lms: Mapping[str, Any]) -> SelfRefine:
        """Binds LMs to the program's role and returns the program.

        Raises:
            DeclarationError: A role is unknown, or what is given for it is no LM.
        """
        check_lms(lms, (self.role,))
        bind_lms(self, lms)
        return self

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Answers, and refines the answer.

        Args:
            **inputs: The signature's inputs.

        Returns:
            The signature's outputs; `result_of` gives every candidate with its score and critique.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        best = await self._ask(self.answer, inputs)
        first, spent, notes = await self._judged(1, best, inputs)
        attempts = [replace(first, kept=True)]
        kept = 0
        for number in range(2, self.rounds + 2):
            current = attempts[kept]
            if current.score is None or current.score == BEST or not current.critique:
                break
            following = {DRAFT: _shown(current.reading), CRITIQUE: current.critique}
            candidate = await self._ask(self.rewrite, {**inputs, **following})
            judged, usage, more = await self._judged(number, candidate, inputs)
            better = judged.score is not None and judged.score >= current.score and _readable(judged.reading)
            attempts.append(replace(judged, kept=better))
            spent, notes = spent + usage, notes + more
            if better:
                best, kept = candidate, len(attempts) - 1
        attempts[kept] = replace(attempts[kept], chosen=True)
        solver = CallUsage()
        for attempt in attempts:
            solver = solver + attempt.reading.usage
        result = BaselineResult(
            reading_of(best), tuple(attempts), "refined", {"solver": solver, "critic": spent}, tuple(notes)
        )
        return with_result(best, result)

    async def _ask(self, predictor: Any, inputs: Mapping[str, Any]) -> dspy.Prediction:
        return await predictor.acall(config=at_temperature(lm_of(predictor), self.temperature), **inputs)

    async def _judged(
        self, number: int, prediction: dspy.Prediction, inputs: Mapping[str, Any]
    ) -> tuple[Attempt, CallUsage, list[str]]:
        reading = reading_of(prediction)
        if not _readable(reading):
            return Attempt(number, "candidate", reading), CallUsage(), [f"candidate {number} could not be read"]
        said = reading_of(await self._ask(self.criticise, {**inputs, DRAFT: _shown(reading)}))
        score = said.outcomes[SCORE]
        notes = [f"candidate {number} has no score: {score.reason}"] if isinstance(score, Unscored) else []
        attempt = Attempt(number, "candidate", reading, score=said.value(SCORE), critique=said.value(CRITIQUE))
        return attempt, said.usage, notes


def _readable(reading: Reading) -> bool:
    return all(isinstance(outcome, Scored) for outcome in reading.outcomes.values())


def _shown(reading: Reading) -> str:
    """Returns an answer as the critic and the next round see it."""
    return json.dumps({name: reading.value(name) for name in reading.outcomes}, ensure_ascii=False, default=str)
