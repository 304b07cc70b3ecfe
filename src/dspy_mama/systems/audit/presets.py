"""The paper's systems and ablations, as settings, and the one place where settings become a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ports import Retriever
from dspy_mama.lm.module import AsyncModule
from dspy_mama.retrieval.retriever import NullRetriever
from dspy_mama.retrieval.shipped import ShippedRetriever
from dspy_mama.settings import AblationSettings, RouterSettings, SystemSettings, from_mapping, to_mapping
from dspy_mama.systems.audit.consensus import ConsensusJudge, MajorityVote
from dspy_mama.systems.audit.exemplar import Exemplar, ExemplarAssessor
from dspy_mama.systems.audit.initial import InitialAssessor
from dspy_mama.systems.audit.program import NullPhase, RiskAuditor
from dspy_mama.systems.audit.routing import (
    AgnosticRouter,
    NoRouter,
    SpecialistRouter,
    SpecialistTable,
    allow_list,
    read_mapping,
)
from dspy_mama.systems.audit.verification import DomainVerifier

SYSTEMS: Final[dict[str, SystemSettings]] = {
    "baseline": SystemSettings("baseline", context="none", judge_prompt="base"),
    "enhanced": SystemSettings("enhanced", context="none"),
    "embedding": SystemSettings("embedding", context="encyclopedic"),
    "rag": SystemSettings("rag", context="all"),
    "rag_foreign": SystemSettings("rag_foreign", context="all", jurisdictions=("US", "EU", "DE")),
}
"""Paper A, Benchmarking and Table 2: all share the base prompt; only context and MA3 prompt differ."""

WITHOUT_LM: Final[dict[str, SystemSettings]] = {"exemplar": SystemSettings("exemplar", context="none")}
"""Systems beside the paper's that ask no LM."""

ABLATIONS: Final[dict[str, AblationSettings]] = {
    "full": AblationSettings("full"),
    "ma": AblationSettings("ma", roles=False, knowledge=False),
    "ma_mpa": AblationSettings("ma_mpa", knowledge=False),
    "ma_ek": AblationSettings("ma_ek", roles=False),
    "ma_without_ma2": AblationSettings("ma_without_ma2", verification=False, roles=False, knowledge=False),
    "mpa": AblationSettings("mpa", initial=False, consensus=False, knowledge=False),
    "ek": AblationSettings("ek", verification=False, consensus=False, roles=False),
}
"""Paper A, ablation study: assessments (MA), professional agents (MPA), external knowledge (EK), alone and joined."""


def _named(kind: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise DeclarationError(f"unknown {kind} {name!r}; choose one of {', '.join(known)}")
    return known[name]


def build_router(settings: RouterSettings, *, roles: bool) -> AsyncModule:
    """Makes the router that the settings ask for; a null where roles are off.

    Raises:
        DeclarationError: The allow-list, the mapping or the table cannot be used.
    """
    if not roles:
        return NoRouter()
    if settings.scope == "agnostic":
        return AgnosticRouter()
    mapping = read_mapping(settings.mapping) if settings.mapping else None
    specialties = allow_list(settings.allow_list, settings.aliases)
    return SpecialistRouter(specialties=specialties, table=SpecialistTable(settings.table), mapping=mapping)


def build_program(
    system: SystemSettings, ablation: AblationSettings, retriever: Retriever | None = None
) -> RiskAuditor:
    """Makes the program that the settings ask for.

    Args:
        system: Context, prompts and probability.
        ablation: Which parts run.
        retriever: Evidence, already restricted to the system's sources; None = the shipped corpus.

    Raises:
        DeclarationError: The settings contradict one another.
    """
    if system.program is not None:
        raise DeclarationError("system.program is a setting of runs; here, dspy_mama.load_program(PATH) gives it")
    if system.name == "exemplar":
        return _exemplar(system, ablation)
    if system.evidence != "notes" and system.context == "none":
        raise DeclarationError(
            f"system.evidence={system.evidence} shows MA3 passages, but system.context=none has none"
        )
    knowledge = ablation.knowledge and system.context != "none"
    if knowledge and retriever is None:
        retriever = ShippedRetriever(context=system.context, jurisdictions=system.jurisdictions)
    common: dict[str, Any] = {"probability": system.probability, "jurisdiction": system.jurisdiction}
    alone = ablation.initial and not ablation.verification and not ablation.consensus
    initial = InitialAssessor(with_evidence=knowledge and alone, **common) if ablation.initial else NullPhase()
    verification = (
        DomainVerifier(professional=ablation.roles, with_evidence=knowledge, **common)
        if ablation.verification
        else NullPhase()
    )
    return RiskAuditor(
        router=build_router(system.router, roles=ablation.roles),
        initial=initial,
        verification=verification,
        consensus=_consensus(system, ablation, common, system.evidence if knowledge else "notes"),
        retriever=retriever if knowledge and retriever is not None else NullRetriever(),
        query=system.query,
        thresholds=system.thresholds,
        order_seed=system.order_seed,
        settings=(system, ablation),
    )


def _exemplar(system: SystemSettings, ablation: AblationSettings) -> RiskAuditor:
    if ablation.name != "full" or system.exemplar:
        raise DeclarationError(
            "system=exemplar is a trained head with no part to switch off and no MA3 to speak to: leave ablation and "
            "system.exemplar out"
        )
    return RiskAuditor(
        router=NoRouter(),
        initial=ExemplarAssessor(Exemplar.load(system.head)),
        verification=NullPhase(),
        consensus=NullPhase(),
        retriever=NullRetriever(),
        thresholds=system.thresholds,
        settings=(system, ablation),
    )


def _voice(system: SystemSettings, ablation: AblationSettings) -> Exemplar | None:
    if not system.exemplar:
        return None
    if not ablation.consensus or system.consensus == "majority":
        raise DeclarationError(
            "system.exemplar=true shows MA3 one more voice, and here no LM reaches a consensus: leave it out, or take "
            "system.consensus=judge and an ablation with the consensus phase"
        )
    return Exemplar.load(system.head)


def _consensus(
    system: SystemSettings, ablation: AblationSettings, common: Mapping[str, Any], evidence: str
) -> AsyncModule:
    voice = _voice(system, ablation)
    if not ablation.consensus:
        return NullPhase()
    if system.consensus == "majority":
        return MajorityVote()
    return ConsensusJudge(
        prompt=system.judge_prompt,
        evidence=evidence,
        with_verification=ablation.verification,
        order_seed=system.order_seed,
        voice=voice,
        **common,
    )


def build_auditor(
    system: str,
    ablation: str,
    *,
    lms: Mapping[str, Any] | None = None,
    retriever: Retriever | None = None,
    **overrides: Any,
) -> RiskAuditor:
    """Makes a preset with overrides; see `RiskAuditor.from_preset`."""
    base = _named("system", system, {**SYSTEMS, **WITHOUT_LM})
    chosen = from_mapping(SystemSettings, {**to_mapping(base), **overrides}) if overrides else replace(base)
    program = build_program(chosen, _named("ablation", ablation, ABLATIONS), retriever)
    return program.set_lms(lms) if lms else program
