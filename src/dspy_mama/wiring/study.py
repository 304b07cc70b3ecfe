"""One audit run from settings to the five files, the tables' numbers, the report and the tracker."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dspy_mama.core.cases import Phase, QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import object_hash
from dspy_mama.datasets import load_pairs
from dspy_mama.optimize import program_state
from dspy_mama.reporting import flat_metrics, run_figures, summarise, to_png, write_report
from dspy_mama.reporting.stability import add_stability
from dspy_mama.runtime import RunResult, UnscoredRate, check_unscored, make_progress, pair_key, run_pairs
from dspy_mama.settings import Settings, to_mapping
from dspy_mama.systems.audit import RiskAuditor, audit_record
from dspy_mama.tracking import RunStore, build_manifest, spec_hash
from dspy_mama.wiring.build import (
    build_auditor_program,
    build_tracker,
    model_facts,
    pairs_in_flight,
    prompt_hashes,
    served_requests,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What a run gave.

    Attributes:
        folder: The run's folder.
        summary: `summary.json`; empty where the run was interrupted.
        unscored: Share of final verdicts without a value, and its limit.
        run: How the run ended.
        tracked: Id of the run in the tracker, or "".
        problems: What could not be logged.
        resumed: Pairs that an earlier start of the same run had finished.
        records: Records in the order of the data; the file keeps them in the order in which they finished.
        requests: Requests that the embedded server answered in this process, by its own count; None without one.
    """

    folder: Path
    summary: dict[str, Any]
    unscored: UnscoredRate
    run: RunResult
    tracked: str = ""
    problems: tuple[str, ...] = ()
    resumed: int = 0
    requests: int | None = None
    records: tuple[dict[str, Any], ...] = ()

    @property
    def exit_code(self) -> int:
        """0 done, 1 interrupted, 3 too many verdicts unscored."""
        return 1 if self.run.interrupted else 3 if self.unscored.exceeded else 0


def run_spec(settings: Settings, facts: dict[str, Any], program: RiskAuditor, verb: str) -> dict[str, Any]:
    """Returns what `spec.json` holds: the settings, and whatever else the records depend on."""
    data = {key: facts.get(key) for key in ("files", "label_definition", "selected")}
    return {
        "name": verb,
        **to_mapping(settings),
        "data_facts": data,
        "prompts": prompt_hashes(program),
        "evidence": dict(program.retriever.describe()),
    }


def final_phase_of(settings: Settings) -> Phase:
    """Returns the phase whose verdicts count under an ablation."""
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
    build_tracker(settings)  # an address that MLflow refuses is found before the first token is spent
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
    spec = run_spec(settings, facts, program, verb)
    started = datetime.now(UTC)
    with RunStore.start(settings.tracking.root, spec, resume=settings.runtime.resume) as store:
        result = await audit_pairs(settings, program, pairs, store)
        records = _in_order(store.records(), pairs)
        unscored = check_unscored(records, settings.runtime.max_unscored_rate)
        if result.interrupted:
            return StudyResult(
                store.folder, {}, unscored, result, resumed=result.skipped, requests=served_requests(program)
            )
        summary = summarise(records, **bootstrap_of(to_mapping(settings.experiment)))
        write_facts(settings, program, store, spec, facts, started, summary, records)
        # A run is complete when all five files are there. One that fails for want of a server is not: the same
        # command goes on from it, asks again for the pairs that failed, and repeats no other.
        if not (result.failed and unscored.exceeded):
            store.write("summary", summary)
        tracked, problems = _track(
            settings, store, summary, records, {"study": verb, **(tags or {})}, failed=unscored.exceeded
        )
    requests = served_requests(program)
    return StudyResult(store.folder, summary, unscored, result, tracked, problems, result.skipped, requests, records)


def _in_order(records: Sequence[dict[str, Any]], pairs: Sequence[QAPair]) -> tuple[dict[str, Any], ...]:
    place = {pair_key(pair): number for number, pair in enumerate(pairs)}
    return tuple(sorted(records, key=lambda record: place.get(record["key"], len(place))))


async def audit_pairs(
    settings: Settings, program: RiskAuditor, pairs: Sequence[QAPair], store: RunStore, *, repeat: int = 0
) -> RunResult:
    """Audits the pairs that the store does not hold yet.

    Args:
        settings: The run.
        program: What audits.
        pairs: Pairs to audit.
        store: The run, open for writing.
        repeat: 0-based index where the same pairs are audited several times.

    Raises:
        DeclarationError: Settings or LM are at fault.
        TooManyFailuresError: Pair after pair failed on infrastructure.
    """
    import dspy

    async def audit(pair: QAPair) -> dict[str, Any]:
        prediction = await program.acall(question=pair.question, answer=pair.answer)
        return audit_record(pair, prediction)

    width = replace(settings.runtime, concurrency=pairs_in_flight(settings))
    # DSPy's history keeps whole prompts and replies of patients' texts in memory; the records hold what is needed.
    with dspy.context(disable_history=True):
        return await run_pairs(
            pairs,
            audit,
            store,
            width,
            repeat=repeat,
            final_phase=final_phase_of(settings),
            store_text=settings.tracking.store_text,
            progress=make_progress(settings.runtime.progress),
        )


def write_facts(
    settings: Settings,
    program: RiskAuditor,
    store: RunStore,
    spec: dict[str, Any],
    facts: dict[str, Any],
    started: datetime,
    summary: dict[str, Any],
    records: Sequence[dict[str, Any]],
) -> None:
    """Writes program, manifest, figures and report of a run; its summary is left for the caller to write last."""
    files = [settings.data.path] if settings.data.path else []
    store.write("program", program_state(program))
    manifest = build_manifest(
        spec,
        started,
        data=[Path(file) for file in files],
        corpus=program.retriever.describe(),
        models=model_facts(settings, program),
        prompts=prompt_hashes(program),
    )
    store.write("manifest", {**manifest, "data_facts": facts})
    write_pictures(store.folder, records, summary, store.load("spec"))


def write_pictures(
    folder: Path, records: Sequence[dict[str, Any]], summary: dict[str, Any], spec: dict[str, Any]
) -> Path:
    """Writes figures and the HTML report of a run into its folder, and returns the report's path."""
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    for name, figure in run_figures(summary).items():
        (figures / f"{name}.png").write_bytes(to_png(figure))
    system, ablation, data = (str(spec.get(group, {}).get("name")) for group in ("system", "ablation", "data"))
    context = [f"Run {folder.name}", f"System {system}, ablation {ablation}, data {data}"]
    return write_report(folder / "report.html", records, summary, title="Risk audit", context=context)


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
    options = bootstrap_of(spec.get("experiment", {}))
    summary = add_stability(summarise(records, **options), records)
    return summary, write_pictures(folder, records, summary, spec)


def bootstrap_of(study: Mapping[str, Any]) -> dict[str, Any]:
    """Returns how the intervals of a study are made, as `summarise` takes it."""
    return {
        "seed": study.get("seed", 0),
        "resamples": study.get("resamples", 1000),
        "method": study.get("interval", "percentile"),
        "cluster_by_question": study.get("cluster_by_question", False),
    }


def _track(
    settings: Settings,
    store: RunStore,
    summary: dict[str, Any],
    records: Sequence[dict[str, Any]],
    tags: Mapping[str, str],
    *,
    failed: bool,
) -> tuple[str, tuple[str, ...]]:
    tracker = build_tracker(settings)
    # With the folder's name in it, a second run of the same settings is a run of its own.
    name = f"{settings.system.name}/{settings.ablation.name}/{settings.lm.name} {store.run_id}"
    spec = store.load("spec")
    own = {
        "system": settings.system.name,
        "ablation": settings.ablation.name,
        "lm": settings.lm.name,
        "data": settings.data.name,
        "data_hash": object_hash(spec.get("data_facts"), 16),
        "spec_hash": spec_hash(spec),
        "run_folder": store.run_id,
    }
    run_id = tracker.start(name, to_mapping(settings), {**own, **tags})
    tracker.log_metrics(flat_metrics(summary))
    tracker.log_artifacts(str(store.folder))
    if settings.tracking.traces > 0:
        for record in records:
            tracker.log_trace(record)
    tracker.finish("FAILED" if failed else "FINISHED")
    problems = tuple(getattr(tracker, "problems", ()))
    return run_id or "", problems
