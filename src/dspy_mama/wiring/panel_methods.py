"""From panel settings to the programs that are compared: the panel and its baselines, all with one face."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dspy_mama.core.disease_names import normalise_disease
from dspy_mama.settings.panel import PanelSettings
from dspy_mama.systems.baselines import ChainOfThought, Direct, SelfConsistency, SelfRefine
from dspy_mama.systems.mac import DiagnosisPanel, DiseaseExpert, KnowledgePanel, SingleDiagnosis

ROLE = "doctor"
"""Baselines ask the LM of the panel's doctors: a comparison of methods, not of models."""


def _makers(settings: PanelSettings) -> dict[str, Callable[[Any], Any]]:
    baselines, own = settings.baselines, settings.temperatures.get("doctor")
    return {
        "direct": lambda signature: Direct(signature, role=ROLE, temperature=own),
        "cot": lambda signature: ChainOfThought(signature, role=ROLE, temperature=own),
        "self_consistency": lambda signature: SelfConsistency(
            signature,
            paths=baselines.paths,
            temperature=baselines.temperature,
            vote=("most_likely",),
            normalise=normalise_disease,
            merge_synonyms=baselines.merge_synonyms,
            role=ROLE,
        ),
        "self_refine": lambda signature: SelfRefine(
            signature, rounds=baselines.rounds, temperature=baselines.temperature, role=ROLE
        ),
    }


def build_methods(settings: PanelSettings, lms: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Makes the programs of `panel.methods`, in their order.

    Args:
        settings: The panel and its baselines.
        lms: LMs by role; None = `dspy.settings.lm` at the call.

    Returns:
        Program by method; each is called with `case` and `stage`.

    Raises:
        DeclarationError: A role is unknown, or what is given for it is no LM.
    """
    makers, single = _makers(settings), _without_single_doctors(lms)
    return {
        method: DiagnosisPanel.from_settings(settings, lms)
        if method == "mac"
        else SingleDiagnosis(makers[method], method=method, prompt_tokens=settings.prompt_tokens, lms=single)
        for method in settings.methods
    }


def build_knowledge(settings: PanelSettings, lms: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Makes the programs of `panel.methods` that say what they know of a disease, in their order.

    Self-consistency is not among them: entries in prose have no majority.

    Args:
        settings: The panel and its baselines.
        lms: LMs by role; None = `dspy.settings.lm` at the call.

    Returns:
        Program by method; each is called with `disease`.

    Raises:
        DeclarationError: A role is unknown, or what is given for it is no LM.
    """
    makers, single, heat = _makers(settings), _without_single_doctors(lms), settings.temperatures
    return {
        method: KnowledgePanel(
            settings.doctors,
            supervisor=settings.supervisor,
            temperature=heat.get("doctor"),
            merge_temperature=heat.get("supervisor" if settings.supervisor else "concluder"),
            lms=lms,
        )
        if method == "mac"
        else DiseaseExpert(makers[method], method=method, lms=single)
        for method in settings.methods
        if method != "self_consistency"
    }


def _without_single_doctors(lms: Mapping[str, Any] | None) -> dict[str, Any]:
    return {role: lm for role, lm in (lms or {}).items() if not role.startswith("doctor_")}
