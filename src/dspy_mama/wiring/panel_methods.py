"""From panel settings to the programs that are compared: the panel and its baselines, all with one face."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dspy_mama.core.disease_names import normalise_disease
from dspy_mama.settings.panel import PanelSettings
from dspy_mama.systems.baselines import ChainOfThought, Direct, SelfConsistency, SelfRefine
from dspy_mama.systems.mac import DiagnosisPanel, SingleDiagnosis

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
    makers = _makers(settings)
    single = {role: lm for role, lm in (lms or {}).items() if not role.startswith("doctor_")}
    return {
        method: DiagnosisPanel.from_settings(settings, lms)
        if method == "mac"
        else SingleDiagnosis(makers[method], method=method, lms=single)
        for method in settings.methods
    }
