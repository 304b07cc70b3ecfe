"""From a refinement to what a caller sees, and what a reader should be told about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import dspy

from dspy_mama.lm.usage import CallUsage
from dspy_mama.settings.refiner import RefinerSettings
from dspy_mama.systems.refine.criteria import Criteria
from dspy_mama.systems.refine.rules import is_hugging, is_oscillating, needs_review
from dspy_mama.systems.refine.schema import Refinement, Version
from dspy_mama.systems.refine.warnings import warnings


def prediction_of(refinement: Refinement, settings: RefinerSettings, criteria: Criteria) -> dspy.Prediction:
    """Returns a refinement as a DSPy program's prediction."""
    final = refinement.final
    judged = final.consensus
    accepted = judged.accepted if judged is not None else None
    return dspy.Prediction(
        answer=final.draft.text,
        accepted=accepted,
        converged=refinement.converged,
        iterations=refinement.iterations,
        stopped=refinement.stopped,
        ama=judged.ama if judged else None,
        sra=judged.sra if judged else None,
        needs_review=needs_review(final, refinement.stopped),
        end_states=end_states(refinement, settings),
        warnings=warnings(refinement),
        refinement=refinement,
        criteria=criteria,
        settings=settings,
    )


def end_states(refinement: Refinement, settings: RefinerSettings) -> dict[str, bool | None]:
    """Returns in which of the states that safety scores do not show a refinement ended; None = not known.

    Returns:
        `refusal` and `vague` (of the returned text), `refusal_words` (a cross-check without an LM), `incomplete` (it
        breaks off at the token limit), `oscillating` and `hugging` (accepted exactly at a threshold).
    """
    help_ = refinement.helpfulness
    loop = [version for version in refinement.versions if version.stage == "loop"]
    return {
        "refusal": help_.refusal if help_ else None,
        "vague": help_.vague if help_ else None,
        "refusal_words": help_.refusal_words if help_ else None,
        "incomplete": refinement.final.draft.incomplete,
        "oscillating": is_oscillating(loop),
        "hugging": is_hugging(
            refinement.final.consensus,
            ama_threshold=settings.ama_threshold,
            sra_threshold=settings.sra_threshold,
        ),
    }


def usage_by_role(refinement: Refinement) -> dict[str, CallUsage]:
    """Returns what each role's calls cost, rivals included."""
    parts: list[tuple[str, CallUsage]] = []
    for version in refinement.versions:
        parts += version_usage(version, lambda own: _is_repeat(refinement, own))
    for role, part in (
        ("gate", refinement.gate),
        ("classifier", refinement.category),
        ("helpfulness", refinement.helpfulness),
    ):
        if part is not None:
            parts.append((role, part.usage))
    return summed(parts)


def summed(parts: Iterable[tuple[str, CallUsage]]) -> dict[str, CallUsage]:
    """Returns usage by role; a role that was not asked is absent."""
    spent: dict[str, CallUsage] = {}
    for role, usage in parts:
        if usage.calls or usage.cache_hits:
            spent[role] = spent.get(role, CallUsage()) + usage
    return spent


def version_usage(version: Version, paid: Callable[[Version], bool]) -> list[tuple[str, CallUsage]]:
    """Returns what a version and its rivals cost, by role.

    Args:
        version: The version.
        paid: Whether a version's text is an earlier one's, which was paid for.
    """
    parts: list[tuple[str, CallUsage]] = []
    for own in (version, *version.rivals):
        if own.draft.generator and not paid(own):
            parts.append((own.draft.generator, own.draft.usage))
        parts += [(one.evaluator, one.usage) for one in own.assessments]
        if own.plan is not None:
            parts.append(("planner", own.plan.usage))
    return parts


def _is_repeat(refinement: Refinement, version: Version) -> bool:
    """Tells whether a version is an earlier one's text judged again: it was paid for once."""
    return any(earlier.draft is version.draft for earlier in refinement.versions if earlier.number < version.number)


def models_by_role(refinement: Refinement) -> Mapping[str, str]:
    """Returns the model behind each role, as the server resolved it."""
    found: dict[str, Any] = version_models(refinement.versions)
    for role, part in (
        ("gate", refinement.gate),
        ("classifier", refinement.category),
        ("helpfulness", refinement.helpfulness),
    ):
        if part is not None:
            found.setdefault(role, part.model)
    return {role: model for role, model in found.items() if model}


def version_models(versions: Iterable[Version]) -> dict[str, Any]:
    """Returns the models that wrote, judged and planned, by role."""
    found: dict[str, Any] = {}
    for version in versions:
        for own in (version, *version.rivals):
            parts = [(own.draft.generator, own.draft.model), *((one.evaluator, one.model) for one in own.assessments)]
            parts += [("planner", own.plan.model)] if own.plan is not None else []
            for role, model in parts:
                if role and model:
                    found.setdefault(role, model)
    return found
