"""System B: generate, evaluate side by side, plan and refine until both evaluators accept (paper B, Algorithm 1)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import dspy

from dspy_mama.core.chat_request import ChatTurn, as_history
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Scored
from dspy_mama.systems.refine.conversation import conversation_of, in_context
from dspy_mama.systems.refine.modules import LoopModules
from dspy_mama.systems.refine.prediction import prediction_of
from dspy_mama.systems.refine.rules import (
    BREAKS_OFF,
    FINISH,
    better,
    first_text,
    merge,
    needs_no_change,
    only_unfinished,
    unassessed,
    unfinished,
)
from dspy_mama.systems.refine.sampling import not_sent
from dspy_mama.systems.refine.schema import (
    Assessment,
    Consensus,
    Draft,
    GateDecision,
    Plan,
    PromptCategory,
    Refinement,
    Stop,
    Version,
)


class SafetyRefiner(LoopModules):
    """Writes an answer, or takes one, and revises it until it is acceptable or the budget ends.

    Example:
        ```python
        refiner = SafetyRefiner(lms={"generator": dspy.LM("openai/gpt-4o")})
        refined = refiner(question="...", answer=None)
        refined.answer, refined.accepted, refined.iterations, refined.refinement.versions
        ```

    It is no substitute for a clinical decision or for the risk management of a device.
    """

    async def aforward(
        self,
        question: str,
        answer: str | None = None,
        history: Iterable[ChatTurn | Mapping[str, Any]] | None = (),
        **context: Any,
    ) -> dspy.Prediction:
        """Mends one answer.

        Args:
            question: The request; with a history, the last turn of the patient.
            answer: An answer that is to be mended; None = the generator writes the first one.
            history: Turns before the question, as `ChatTurn` or as mappings with `role` and `content`.
            **context: Further fields of an example; they are not looked at.

        Returns:
            `answer` (the returned text, or None), `accepted`, `converged`, `iterations`, `stopped`, `ama`, `sra`,
            `needs_review`, `warnings`, and `refinement`, the whole `Refinement`.

        Raises:
            DeclarationError: The question is empty, the settings name an auditor that was not given, or the LM's
                configuration is at fault.
        """
        self._check_auditor()
        if not isinstance(question, str) or not question.strip():
            raise DeclarationError("question is empty: there is nothing to answer")
        if answer is not None and not (isinstance(answer, str) and answer.strip()):
            raise DeclarationError("answer is empty: leave it out to have one written")
        turns = as_history(history or ())
        asked = in_context(question, turns)
        category = asyncio.ensure_future(self._category(asked))
        try:
            refinement = await self._refine(question, answer, turns)
            refinement = replace(refinement, history=turns, category=await category)
        finally:
            category.cancel()
            await asyncio.gather(category, return_exceptions=True)
        text = refinement.final.draft.text
        if self.helpfulness is not None and text is not None:
            refinement = replace(refinement, helpfulness=await self.helpfulness.acall(asked, text))
        if self.settings.sampling:
            predictors = [predictor for _, predictor in self.named_predictors()]
            refinement = replace(refinement, not_sent=not_sent(predictors, self.settings.sampling))
        return prediction_of(refinement, self.settings, self.criteria)

    def _check_auditor(self) -> None:
        """Refuses to leave out a judge that the settings name: texts would be accepted that it never saw."""
        own = self.settings
        if (own.auditor and not self.further) or (own.gate == "auditor" and self.gate is None):
            raise DeclarationError("the settings ask the auditor, and none was given as evaluators=[...] or gate=...")

    async def _category(self, question: str) -> PromptCategory | None:
        return await self.classifier.acall(question) if self.classifier is not None else None

    async def _refine(self, question: str, answer: str | None, turns: tuple[ChatTurn, ...]) -> Refinement:
        """The loop; each pass assesses a version, then either stops or revises it."""
        conversation = conversation_of(turns)
        drafts = [Draft(Scored(answer), "given")] if answer is not None else await self._write(question, conversation)
        gate = await self._gate(in_context(question, turns), drafts)
        versions: list[Version] = []
        if gate is not None and not gate.entered:
            return Refinement(question, (), (unassessed(1, drafts),), "gate", None, 0, gate)
        for iteration in itertools.count(1):
            version = await self._best(iteration, question, drafts, turns)
            versions.append(version)
            found = version.consensus
            stop = self._stop(version)
            if stop is not None or found is None:
                break
            if needs_no_change(found, self.settings):
                # Nothing was found wrong by those that could be read: the text is judged again as it is.
                drafts = [version.draft]
            else:
                plan, drafts = await self._revise(question, version, found, conversation)
                versions[-1] = replace(version, plan=plan)
            if iteration == self.settings.max_iterations:
                versions += await self._after_budget(question, version, drafts, turns)
                stop = "budget" if found.readable or found.refused else "unreadable"
                break
        return _refinement(question, versions, stop or "generation", gate)

    def _stop(self, version: Version) -> Stop | None:
        found = version.consensus
        if found is None:
            return "generation"
        if found.accepted:
            return "accepted"
        return "unreadable" if found.ama is None and found.sra is None and not found.risks else None

    async def _write(self, question: str, conversation: str) -> list[Draft]:
        return list(await asyncio.gather(*(one.generate(question, conversation) for one in self.generators)))

    async def _revise(
        self, question: str, version: Version, found: Consensus, conversation: str
    ) -> tuple[Plan, list[Draft]]:
        text = version.draft.text or ""
        plan = await self._plan(question, text, found)
        return plan, await self.rewrite(question, text, plan.steps, conversation)

    async def rewrite(self, question: str, text: str, steps: Sequence[str], conversation: str) -> list[Draft]:
        """Has every generator rewrite a text by the steps of a plan."""
        told = "\n".join(f"- {step}" for step in steps)
        drafts = await asyncio.gather(*(one.refine(question, text, told, conversation) for one in self.generators))
        return list(drafts)

    async def last_version(
        self, number: int, question: str, drafts: Sequence[Draft], turns: tuple[ChatTurn, ...]
    ) -> Version:
        """Returns the text of the last revision: unassessed as published, or assessed once more and said so."""
        if self.settings.final_check:
            return await self._best(number, question, drafts, turns, "final_check")
        return unassessed(number, drafts)

    async def _plan(self, question: str, text: str, found: Consensus) -> Plan:
        if only_unfinished(found, self.settings):
            return Plan(Scored((FINISH,)), (FINISH,))
        plan: Plan = await self.planner.acall(question, text, found)
        return replace(plan, steps=(FINISH, *plan.steps)) if found.incomplete else plan

    async def _gate(self, question: str, drafts: Sequence[Draft]) -> GateDecision | None:
        first = first_text(drafts)
        text = first.text
        if self.gate is not None and first.incomplete and self.settings.cut_replies == "revise":
            return GateDecision(True, f"{BREAKS_OFF}; evaluated in full", Scored(True))
        return await self.gate.decide(question, text) if self.gate is not None and text is not None else None

    async def _assess(self, question: str, answer: str, turns: tuple[ChatTurn, ...]) -> tuple[Assessment, ...]:
        """Asks every evaluator side by side."""
        own = (one.acall(question, answer, conversation_of(turns)) for one in [*self.ethics, *self.safety])
        others = (one.assess(in_context(question, turns), answer) for one in self.further)
        return tuple(await asyncio.gather(*own, *others))

    async def _best(
        self, number: int, question: str, drafts: Sequence[Draft], turns: tuple[ChatTurn, ...], stage: Any = "loop"
    ) -> Version:
        """Assesses every candidate and returns the best, with its rivals."""
        made = list(await asyncio.gather(*(self._version(number, question, draft, turns, stage) for draft in drafts)))
        best = made[0]
        for candidate in made[1:]:
            best = candidate if better(candidate, best) else best
        return replace(best, rivals=tuple(version for version in made if version is not best))

    async def _version(
        self, number: int, question: str, draft: Draft, turns: tuple[ChatTurn, ...], stage: Any
    ) -> Version:
        if draft.text is None:
            return Version(number, draft, stage=stage)
        assessments = await self._assess(question, draft.text, turns)
        own = self.settings
        consensus = merge(
            assessments,
            ama_threshold=own.ama_threshold,
            sra_threshold=own.sra_threshold,
            mandatory=own.mandatory,
            how=own.merge,
        )
        if draft.incomplete and own.cut_replies == "revise":
            consensus = unfinished(consensus)
        return Version(number, draft, assessments, consensus, stage=stage)

    async def _after_budget(
        self, question: str, version: Version, drafts: Sequence[Draft], turns: tuple[ChatTurn, ...]
    ) -> list[Version]:
        again = all(draft is version.draft for draft in drafts)
        if again and not self.settings.final_check:  # judged again as it was: there is no new text
            return []
        return [await self.last_version(version.number + 1, question, drafts, turns)]


def _refinement(question: str, versions: Sequence[Version], stop: Stop, gate: GateDecision | None) -> Refinement:
    loop = [version for version in versions if version.stage == "loop" and version.consensus is not None]
    judged = bool(loop) and stop not in ("unreadable", "generation")
    return Refinement(
        question=question,
        history=(),
        versions=tuple(versions),
        stopped=stop,
        converged=stop == "accepted" if judged else None,
        iterations=len(loop),
        gate=gate,
    )
