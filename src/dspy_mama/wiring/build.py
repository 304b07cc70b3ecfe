"""From settings to the objects of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ports import Retriever
from dspy_mama.lm.roles import build_lms
from dspy_mama.settings import LMSpec, Settings
from dspy_mama.systems.audit import ROLES, WITHOUT_LM, RiskAuditor, build_program
from dspy_mama.tracking import MlflowTracker, NullTracker, TraceLayout
from dspy_mama.tracking.mlflow_traces import audit_layout
from dspy_mama.wiring.programs import saved_program


def needs_evidence(settings: Settings) -> bool:
    """Tells whether the system and the ablation read documents."""
    return settings.ablation.knowledge and settings.system.context != "none"


def _specs(settings: Settings) -> list[LMSpec]:
    return [settings.lm.default, *settings.lm.roles.values()]


def evidence_budget(settings: Settings) -> int:
    """Returns the tokens of evidence per domain: the retriever's budget, or less where an LM can take less."""
    limits = [spec.evidence_tokens for spec in _specs(settings) if spec.evidence_tokens is not None]
    return min([settings.retriever.evidence_tokens, *limits])


def build_retriever(settings: Settings) -> Retriever:
    """Opens the index for the system's sources; a null where the system reads none.

    Raises:
        IndexStateError: The index is missing, stale or does not fit; the message names the command that repairs.
        DeclarationError: No document of the index may be read, so that the run would silently be one without evidence.
    """
    from dataclasses import replace

    from dspy_mama.retrieval import NullRetriever, open_retriever

    if not needs_evidence(settings):
        return NullRetriever()
    embedder = settings.embedder
    if embedder.threads is None and any(spec.model == "embedded" for spec in _specs(settings)):
        # Queries are embedded while the LM generates: a second thread would take its core and slow both.
        embedder = replace(embedder, threads=1)
    retriever = open_retriever(
        replace(settings.retriever, evidence_tokens=evidence_budget(settings)),
        embedder,
        settings.corpus,
        context=settings.system.context,
        jurisdictions=settings.system.jurisdictions,
    )
    if not retriever.describe()["chunks_in_scope"]:
        raise DeclarationError(
            f"system.jurisdictions=[{','.join(settings.system.jurisdictions)}], system.context="
            f"{settings.system.context}: the index holds no document of these; name those of your documents, or take "
            "system=baseline to judge without evidence"
        )
    return retriever


def build_auditor_program(
    settings: Settings, retriever: Retriever | None = None, lms: Mapping[str, Any] | None = None
) -> RiskAuditor:
    """Makes the program with its LMs bound to roles.

    Args:
        settings: The run.
        retriever: Evidence; None = as the settings say.
        lms: LMs by role; None = those of the settings.

    Raises:
        DeclarationError: A role is unknown, a key is not set, or a file is missing.
    """
    if settings.system.name in WITHOUT_LM:
        return build_program(settings.system, settings.ablation)
    unknown = sorted(set(settings.lm.roles) - set(ROLES))
    if unknown:
        raise DeclarationError(f"lm.roles: unknown role(s) {unknown}; roles are {', '.join(ROLES)}")
    found = retriever or build_retriever(settings)
    if settings.system.program is not None:
        return saved_program(settings, found, lms or build_lms(settings.lm))
    return build_program(settings.system, settings.ablation, found).set_lms(lms or build_lms(settings.lm))


def build_tracker(settings: Settings, layout: TraceLayout = audit_layout) -> MlflowTracker | NullTracker:
    """Makes the tracker that the settings ask for.

    Args:
        settings: The run.
        layout: How a record is shown as a trace.

    Raises:
        DeclarationError: The address names a store that MLflow no longer has.
    """
    if settings.tracking.kind == "none":
        return NullTracker()
    return MlflowTracker(settings.tracking, settings.data.name, layout)


def pairs_in_flight(settings: Settings) -> int:
    """Returns how many pairs run at once: no more than the narrowest LM takes calls, lest they only queue."""
    widths = [spec.max_concurrency for spec in _specs(settings) if spec.max_concurrency is not None]
    return min([settings.runtime.concurrency, *widths])


def predictors_of(program: Any) -> list[tuple[str, Any]]:
    """Returns the predictors of a program by name; none where nothing is asked of an LM (program is None)."""
    return [] if program is None else list(program.named_predictors())


def model_facts(settings: Settings, program: Any) -> dict[str, Any]:
    """Returns per role the model, the settings as sent, and for an embedded one the hash of its file."""
    from dspy_mama.lm.profile import profile_of

    facts: dict[str, Any] = {}
    for name, predictor in predictors_of(program):
        lm, role = predictor.lm, getattr(predictor, "role", name)
        if lm is None or role in facts:
            continue
        sampling = {k: v for k, v in lm.kwargs.items() if k in ("temperature", "top_p", "max_tokens") and v is not None}
        facts[role] = {"model": lm.model, **sampling, "changed": profile_of(lm).effective}
        digest = getattr(getattr(lm, "engine", None), "model_sha256", None)
        if digest:
            facts[role]["sha256"] = digest
    return facts


def prompt_hashes(program: Any) -> dict[str, str]:
    """Returns a hash per predictor of its instructions, fields and demonstrations."""
    from dspy_mama.core.ids import object_hash

    def content(predictor: Any) -> list[Any]:
        return [predictor.signature.dump_state(), getattr(predictor, "last", ()), [dict(d) for d in predictor.demos]]

    return {name: object_hash(content(predictor), 16) for name, predictor in predictors_of(program)}


def served_requests(program: Any) -> int | None:
    """Returns how many requests the embedded servers behind a program answered; None where it has none.

    It is the server's own count, so that it shows what really reached an LM.
    """
    engines: list[Any] = [getattr(predictor.lm, "engine", None) for _, predictor in predictors_of(program)]
    counts = [engine.request_count for engine in engines if hasattr(engine, "request_count")]
    return max(counts) if counts else None
