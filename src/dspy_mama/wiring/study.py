"""Audit runs: their plan, their spec, and their report rebuilt from records."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.cases import Phase, QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets import load_pairs
from dspy_mama.optimize import program_state
from dspy_mama.reporting import flat_metrics, run_figures, summarise, to_png, write_report
from dspy_mama.reporting.stability import add_stability
from dspy_mama.runtime import PairKind
from dspy_mama.settings import Settings, to_mapping
from dspy_mama.systems.audit import WITHOUT_LM, RiskAuditor, audit_record, exemplar_of
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.build import build_auditor_program, build_tracker, prompt_hashes
from dspy_mama.wiring.lifecycle import RunPlan, StudyResult, carry_out, spec_groups
from dspy_mama.wiring.programs import saved_as

logger = logging.getLogger(__name__)

OTHER_SYSTEMS: Final = ("refiner", "panel", "baseline")
"""Groups of settings that an audit does not read."""

UNREAD_WITHOUT_LM: Final = (*OTHER_SYSTEMS, "ablation", "lm", "retriever", "corpus", "embedder", "optimizer")
"""The same for a system that asks no LM."""


def run_spec(settings: Settings, facts: dict[str, Any], program: RiskAuditor, verb: str) -> dict[str, Any]:
    """Returns what `spec.json` holds: the settings, and whatever else the records depend on."""
    data = {key: facts.get(key) for key in ("files", "label_definition", "selected")}
    head = exemplar_of(program)
    return {
        "name": verb,
        **spec_groups(settings, OTHER_SYSTEMS if settings.system.name not in WITHOUT_LM else UNREAD_WITHOUT_LM),
        **({} if head is None else {"exemplar": head.id}),
        "data_facts": data,
        "prompts": prompt_hashes(program),
        **saved_as(program),
        "evidence": dict(program.retriever.describe()),
    }


def final_phase_of(settings: Settings) -> Phase:
    """Returns the phase whose verdicts count under a system and an ablation."""
    if settings.system.name in WITHOUT_LM:
        return "initial"
    if settings.ablation.consensus:
        return "consensus"
    return "verification" if settings.ablation.verification else "initial"


async def run_study(
    settings: Settings,
    *,
    verb: str = "evaluate",
    pairs: Sequence[QAPair] | None = None,
    drop_faulty: bool = False,
    tags: Mapping[str, str] | None = None,
) -> StudyResult:
    """Audits the pairs that the settings name and writes everything a run leaves.

    Args:
        settings: The run.
        verb: What it is called in the records.
        pairs: Pairs to audit; None = those of `settings.data`.
        drop_faulty: Leave faulty rows of the data out instead of refusing the file.
        tags: Further tags of the run in the tracker.

    Raises:
        DeclarationError: Settings, data, index or LM are at fault.
        TooManyFailuresError: Pair after pair failed on infrastructure.
    """
    if settings.experiment.cluster_by_question and not settings.tracking.store_text:
        raise DeclarationError("experiment.cluster_by_question needs the questions: set tracking.store_text=true")
    build_tracker(settings)  # an address that MLflow refuses is found before the index is opened
    facts: dict[str, Any] = {}
    if pairs is None:
        loaded = load_pairs(settings.data, on_fault="drop" if drop_faulty else "raise")
        pairs, facts = loaded.pairs, loaded.facts
        for fault in loaded.faults:
            logger.warning("left out: %s", fault)
    if verb == "evaluate" and not any(label is not None for pair in pairs for label in pair.gold.values()):
        raise DeclarationError(
            f"none of the {len(pairs)} pairs of data={settings.data.name} has a gold label: name the columns, such as "
            "data.columns.medical=COLUMN, or take `mama audit` for pairs without gold"
        )
    program = build_auditor_program(settings)
    return await carry_out(audit_plan(settings, program, pairs, verb, facts=facts, tags=tags))


def audit_plan(
    settings: Settings,
    program: RiskAuditor,
    pairs: Sequence[QAPair],
    verb: str,
    *,
    facts: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
) -> RunPlan[QAPair]:
    """Returns the plan of an audit run.

    Args:
        settings: The run.
        program: What audits.
        pairs: Pairs to audit.
        verb: What the run is called in the records.
        facts: What is known of the data.
        tags: Further tags of the run in the tracker.
    """
    own: dict[str, str] = {"system": settings.system.name, "ablation": settings.ablation.name}
    name = f"{settings.system.name}/{settings.ablation.name}/{settings.lm.name}"
    if settings.system.name in WITHOUT_LM:
        own, name = {**own, "lm": "none"}, settings.system.name
    return RunPlan(
        settings=settings,
        verb=verb,
        items=pairs,
        kind=PairKind(final_phase_of(settings)),
        work=audit_of(program),
        program=program,
        state=lambda: program_state(program, demos="keep" if settings.tracking.store_text else "strip"),
        spec=run_spec(settings, dict(facts or {}), program, verb),
        summarise=lambda records: summarise(records, **bootstrap_of(to_mapping(settings.experiment))),
        pictures=write_pictures,
        metrics=flat_metrics,
        name=name,
        facts=facts or {},
        corpus=program.retriever.describe(),
        tags={**own, **(tags or {})},
    )


def audit_of(program: RiskAuditor) -> Callable[[QAPair], Awaitable[dict[str, Any]]]:
    """Returns the work on one pair: its audit, as a record."""

    async def audit(pair: QAPair) -> dict[str, Any]:
        return audit_record(pair, await program.acall(question=pair.question, answer=pair.answer))

    return audit


def write_pictures(
    folder: Path, records: Sequence[dict[str, Any]], summary: dict[str, Any], spec: dict[str, Any]
) -> Path:
    """Writes figures and the HTML report of a run into its folder, and returns the report's path."""
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    for name, figure in run_figures(summary).items():
        (figures / f"{name}.png").write_bytes(to_png(figure))
    shown = ("system", "baseline", "ablation", "data", *(["optimizer"] if "compile" in summary else []))
    named = [f"{group} {spec[group]['name']}" for group in shown if group in spec]
    context = [f"Run {folder.name}", ", ".join(named).capitalize()]
    title = "Supervised baseline" if "baseline" in spec else "Compiled audit" if "compile" in summary else "Risk audit"
    return write_report(folder / "report.html", records, summary, title=title, context=context)


def rebuild_report(folder: Path) -> tuple[dict[str, Any], Path]:
    """Makes summary, figures and report of a run anew, from its spec and records alone.

    Args:
        folder: The run's folder.

    Returns:
        The summary, and the path of the report.

    Raises:
        DeclarationError: The folder is no run, or it holds no record.
    """
    store = RunStore.open(folder)
    spec, records = store.load("spec"), store.records()
    if not records:
        raise DeclarationError(f"{folder}: holds no record; run the audit first")
    summary = rebuilt_summary(spec, records)
    return summary, write_pictures(folder, records, summary, spec)


def rebuilt_summary(spec: Mapping[str, Any], records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the summary of records under the intervals that their spec asks for."""
    return add_stability(summarise(records, **bootstrap_of(spec.get("experiment", {}))), records)


def bootstrap_of(study: Mapping[str, Any]) -> dict[str, Any]:
    """Returns how the intervals of a study are made, as `summarise` takes it."""
    return {
        "seed": study.get("seed", 0),
        "resamples": study.get("resamples", 1000),
        "method": study.get("interval", "percentile"),
        "cluster_by_question": study.get("cluster_by_question", False),
    }
