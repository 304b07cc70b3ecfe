"""The modules of the loop, one by role, as its settings ask for them, and the LMs that they are bound to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.module import AsyncModule, check_lms
from dspy_mama.lm.predict import StructuredPredict
from dspy_mama.settings import from_mapping, to_mapping
from dspy_mama.settings.refiner import RefinerSettings
from dspy_mama.systems.refine.checks import HelpfulnessChecker, PromptClassifier, QuickGate
from dspy_mama.systems.refine.criteria import load_criteria
from dspy_mama.systems.refine.evaluators import EthicsEvaluator, SafetyEvaluator
from dspy_mama.systems.refine.generator import ReplyGenerator
from dspy_mama.systems.refine.planner import RevisionPlanner
from dspy_mama.systems.refine.sampling import numbered, sampling_of
from dspy_mama.systems.refine.schema import Evaluator, Gate

ROLES = ("generator", "ethics", "safety", "planner", "helpfulness", "classifier", "gate")


class LoopModules(AsyncModule):
    """What the loop asks; how it asks them is the loop's own."""

    def __init__(
        self,
        settings: RefinerSettings | None = None,
        *,
        lms: Mapping[str, Any] | None = None,
        evaluators: Sequence[Evaluator] = (),
        gate: Gate | str | None = None,
        **overrides: Any,
    ) -> None:
        """Makes a refiner.

        Args:
            settings: The loop; None = as published but for the final check, the helpfulness check and the categories.
            lms: LM by role (`generator`, `ethics`, `safety`, `planner`, `helpfulness`, `classifier`, `gate`, numbered
                ones such as `ethics_2`, or `default`); a role without one takes `dspy.settings.lm` at the call.
            evaluators: Further evaluators; each must find a text safe before it is accepted.
            gate: Decides which texts enter the loop, or the name of a setting's choice; None = as the settings say.
            **overrides: Fields of `RefinerSettings`, such as `max_iterations=3`.

        Raises:
            DeclarationError: A setting, a role or a criteria pack is at fault.
        """
        super().__init__()
        base = settings or RefinerSettings()
        if isinstance(gate, str):
            overrides["gate"], gate = gate, None
        self.settings = from_mapping(RefinerSettings, {**to_mapping(base), **overrides}) if overrides else base
        own, sampling = self.settings, self.settings.sampling
        self.criteria = load_criteria(own.criteria)
        if own.ama_threshold >= (most := len(self.criteria.principles)):
            raise DeclarationError(
                f"refiner.ama_threshold={own.ama_threshold:g} accepts a text that violates every principle: "
                f"{self.criteria.name} has {most}; set it below that"
            )
        self.generators = [
            ReplyGenerator(
                role=role, characters=own.reply_characters, sampling=sampling_of(role, sampling, "generator")
            )
            for role in numbered("generator", own.generators)
        ]
        self.ethics = [
            EthicsEvaluator(
                self.criteria,
                role=role,
                reason_characters=own.reason_characters,
                sampling=sampling_of(role, sampling, "ethics"),
            )
            for role in numbered("ethics", own.ethics_evaluators)
        ]
        self.safety = [
            SafetyEvaluator(self.criteria, role=role, sampling=sampling_of(role, sampling, "safety"))
            for role in numbered("safety", own.safety_evaluators)
        ]
        self.planner = RevisionPlanner(sampling=sampling_of("planner", sampling))
        self.classifier = PromptClassifier(sampling=sampling_of("classifier", sampling)) if own.classify else None
        self.helpfulness = (
            HelpfulnessChecker(sampling=sampling_of("helpfulness", sampling)) if own.helpfulness else None
        )
        self.gate = gate or (QuickGate(sampling=sampling_of("gate", sampling)) if own.gate == "lm" else None)
        self.further = tuple(evaluators)
        self._check_sampling()
        if own.cut_replies == "keep":
            self._keep_limits()
        if lms:
            self.set_lms(lms)

    def _check_sampling(self) -> None:
        """Refuses sampling for one of several that are not there: it would be left out, and nobody told."""
        several = {"generator": self.settings.generators, "ethics": self.settings.ethics_evaluators}
        several["safety"] = self.settings.safety_evaluators
        known = {"default", *ROLES, *(name for role, count in several.items() for name in numbered(role, count))}
        if unknown := sorted(set(self.settings.sampling) - known):
            raise DeclarationError(
                f"refiner.sampling: there is no {', '.join(unknown)} in this loop; it has {', '.join(sorted(known))}"
            )

    def _keep_limits(self) -> None:
        """Holds every reply to one token limit: what a generator wrote up to it is the answer, others are re-asked."""
        for _, predictor in self.named_predictors():
            if isinstance(predictor, StructuredPredict):
                predictor.when_cut = "keep" if predictor.role.startswith("generator") else "again"

    def set_lms(self, lms: Mapping[str, Any]) -> Self:
        """Binds LMs to roles and returns the program.

        Raises:
            DeclarationError: A role is unknown, or what is given for it is no LM.
        """
        numbers = [predictor.role for _, predictor in self.named_predictors()]
        check_lms(lms, list(dict.fromkeys([*ROLES, *numbers])))
        for _, predictor in self.named_predictors():
            if isinstance(predictor, StructuredPredict):
                base = predictor.role.rsplit("_", 1)[0]
                own = lms.get(predictor.role, lms.get(base, lms.get("default")))
                predictor.lm = own if own is not None else predictor.lm
        return self
