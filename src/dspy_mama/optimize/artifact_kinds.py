"""Kinds of programs that can be saved: how their settings are told, and how a program is made of them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ports import Retriever
from dspy_mama.settings import AblationSettings, SystemSettings
from dspy_mama.settings.panel import PanelSettings
from dspy_mama.settings.refiner import RefinerSettings
from dspy_mama.systems.audit import RiskAuditor, build_program
from dspy_mama.systems.audit.signatures import risk_definition
from dspy_mama.systems.mac import DiagnosisPanel
from dspy_mama.systems.refine import SafetyRefiner, load_criteria


@dataclass(frozen=True, slots=True)
class ProgramKind:
    """One kind of program.

    Attributes:
        name: Its name in a file.
        program: Its class.
        groups: Settings that it is made from: group -> dataclass.
        settings: From a program to these settings; None = it was composed by hand.
        build: From the settings by group, and evidence, to an uncompiled program.
        criteria: From the settings by group to the words that define what is judged; None = its prompts alone do.
    """

    name: str
    program: type[Any]
    groups: Mapping[str, type[Any]]
    settings: Callable[[Any], Mapping[str, Any] | None]
    build: Callable[[Mapping[str, Any], Retriever | None], Any]
    criteria: Callable[[Mapping[str, Any]], Any]


def _audit_settings(program: Any) -> Mapping[str, Any] | None:
    return None if program.settings is None else dict(zip(("system", "ablation"), program.settings, strict=True))


def _build_audit(groups: Mapping[str, Any], retriever: Retriever | None) -> RiskAuditor:
    return build_program(groups["system"], groups["ablation"], retriever)


def _risk_definitions(groups: Mapping[str, Any]) -> dict[str, str]:
    return {domain: risk_definition(domain, groups["system"].jurisdiction) for domain in DOMAINS}


KINDS: Final[Mapping[str, ProgramKind]] = {
    "risk_auditor": ProgramKind(
        "risk_auditor",
        RiskAuditor,
        {"system": SystemSettings, "ablation": AblationSettings},
        _audit_settings,
        _build_audit,
        _risk_definitions,
    ),
    "diagnosis_panel": ProgramKind(
        "diagnosis_panel",
        DiagnosisPanel,
        {"panel": PanelSettings},
        lambda program: {"panel": program.settings},
        lambda groups, _: DiagnosisPanel.from_settings(groups["panel"]),
        lambda _: None,
    ),
    "safety_refiner": ProgramKind(
        "safety_refiner",
        SafetyRefiner,
        {"refiner": RefinerSettings},
        lambda program: {"refiner": program.settings},
        lambda groups, _: SafetyRefiner(groups["refiner"]),
        lambda groups: load_criteria(groups["refiner"].criteria).hash,
    ),
}
"""Kinds by name; to add one, describe it here."""


def kind_of(program: Any) -> ProgramKind:
    """Returns a program's kind.

    Raises:
        DeclarationError: It is of no kind that can be saved.
    """
    for kind in KINDS.values():
        if isinstance(program, kind.program):
            return kind
    raise DeclarationError(f"{type(program).__name__} cannot be saved; programs that can: {', '.join(KINDS)}")
