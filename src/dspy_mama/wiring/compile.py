"""Compile runs: gold pairs and settings in; a program, what changed, and whether it helped, out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets import load_pairs
from dspy_mama.lm.roles import build_lm
from dspy_mama.optimize import CompileResult, NestedResult, compile_nested, compile_program
from dspy_mama.optimize.artifact import write_state
from dspy_mama.optimize.files import compiled_state, write_result
from dspy_mama.optimize.nested import remove_journals
from dspy_mama.optimize.result import Measured
from dspy_mama.reporting import flat_metrics, summarise
from dspy_mama.runtime import PairKind, UnscoredRate, check_unscored
from dspy_mama.settings import Settings, to_mapping
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.build import build_auditor_program, build_tracker
from dspy_mama.wiring.compile_report import UNCOMPILED, write_comparison
from dspy_mama.wiring.compile_tracking import log_candidates, log_program
from dspy_mama.wiring.lifecycle import RunPlan, track, write_parts
from dspy_mama.wiring.study import audit_of, bootstrap_of, final_phase_of, run_spec, write_pictures

JOURNAL: Final = ".calls.jsonl"
"""Hidden, so that it never reaches the tracker: it holds every prompt's reply until the run is complete."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CompileOutcome:
    """What a compile run gave.

    Attributes:
        folder: The run's folder.
        result: The compilation on one split, or the last one of nested folds.
        document: `summary.json`'s part on the compilation.
        summary: `summary.json`.
        unscored: Share of final verdicts without a value, and its limit.
        tracked: Id of the run in the tracker, or "".
        model: Address of the program as an MLflow model, or "".
        problems: What could not be logged.
    """

    folder: Path
    result: CompileResult
    document: dict[str, Any]
    summary: dict[str, Any]
    unscored: UnscoredRate
    tracked: str = ""
    model: str = ""
    problems: tuple[str, ...] = ()


def check_compile(settings: Settings) -> None:
    """Refuses what cannot be compiled or may not be kept, before the first token.

    Raises:
        DeclarationError: No optimiser is chosen, or what it makes may not be kept or cannot be registered.
    """
    own = settings.optimizer
    if own.name == "none":
        raise DeclarationError(
            "optimizer=none changes nothing: choose one of labelled, bootstrap, mipro, gepa, simba, reanchor, "
            "token_thresholds, staged_bootstrap, staged_gepa, staged_mipro"
        )
    if own.register is not None and settings.tracking.kind != "mlflow":
        raise DeclarationError(
            f"optimizer.register={own.register} needs MLflow's registry: take tracking=mlflow, or leave it out"
        )
    if own.demonstrates() and not settings.tracking.store_text:
        raise DeclarationError(
            f"optimizer={own.name} puts texts of pairs into the program, and tracking.store_text=false keeps texts "
            "out of every file: take gepa, token_thresholds or reanchor"
        )


def run_compile(settings: Settings, say: Say) -> CompileOutcome:
    """Compiles the program that the settings name on their gold pairs, and writes everything a run leaves.

    A run that was killed is gone on with by the same command; replies that were paid for are not asked for again,
    unless texts may not be stored.

    Args:
        settings: The run.
        say: Told what is being done.

    Raises:
        DeclarationError: Settings, data, index or LM are at fault.
    """
    check_compile(settings)
    build_tracker(settings)
    loaded = load_pairs(settings.data)
    program = build_auditor_program(settings)
    started = datetime.now(UTC)
    spec = run_spec(settings, loaded.facts, program, "compile")
    with RunStore.start(settings.tracking.root, spec, resume=settings.runtime.resume) as store:
        result, document, measured = _compile(settings, program, loaded.pairs, store.folder, say)
        plan = _plan(settings, program, loaded.pairs, spec, loaded.facts, result)
        demos = "keep" if settings.tracking.store_text else "strip"
        write_result(store.folder, result, settings.optimizer, demos)
        _write_records(settings, store, measured, store.load("spec"))
        records = store.records()
        summary = {**plan.summarise(records), "compile": document}
        write_parts(plan, store, started)
        write_pictures(store.folder, records, summary, store.load("spec"))
        write_state(document, store.folder / "compile.json")
        store.write("summary", summary)
        # Only now is the run complete: until then every start goes on from the journal.
        remove_journals(store.folder / JOURNAL)
        unscored = check_unscored(records, settings.runtime.max_unscored_rate)
        tracked, problems = track(plan, store, summary, records, failed=unscored.exceeded)
        model = ""
        if tracked:
            problems += log_candidates(settings, tracked, result, store.folder)
            model, more = log_program(settings, tracked, result)
            problems += more
    return CompileOutcome(store.folder, result, document, summary, unscored, tracked, model, problems)


def _compile(
    settings: Settings, program: Any, pairs: Sequence[QAPair], folder: Path, say: Say
) -> tuple[CompileResult, dict[str, Any], Measured]:
    own = settings.optimizer
    options: dict[str, Any] = {
        "reflection_lm": None if own.reflection is None else build_lm(own.reflection),
        "teacher_lm": None if own.teacher is None else build_lm(own.teacher),
        "journal": folder / JOURNAL if settings.tracking.store_text else None,
        "keep_journal": True,
        "say": say,
    }
    options |= {"ledger": Path(settings.tracking.root) / "test_looks.jsonl", "looks_as": folder.name}
    found: NestedResult | CompileResult
    if own.split.folds:
        found = nested = compile_nested(program, pairs, own, **options)
        result, measured = nested.final, nested.measured
    else:
        found = result = compile_program(program, pairs, own, **options)
        measured = result.test
    if found.earlier_looks:
        say(
            f"ATTENTION: these test pairs were looked at {found.earlier_looks} time(s) before, by other compilations; "
            "choosing among them makes the best one look better than it is"
        )
    return result, found.to_dict(), measured or result.validation


def _plan(
    settings: Settings, program: Any, pairs: Sequence[QAPair], spec: Any, facts: Any, result: CompileResult
) -> RunPlan[QAPair]:
    demos = "keep" if settings.tracking.store_text else "strip"
    tags = {
        "system": settings.system.name, "ablation": settings.ablation.name, "optimizer": settings.optimizer.name,
        "kept": str(result.kept).lower(), "mlflow.note.content": f"{result.reason}. What changed: diff.txt",
    }  # fmt: skip
    return RunPlan(
        settings=settings,
        verb="compile",
        items=pairs,
        kind=PairKind(final_phase_of(settings)),
        work=audit_of(result.program),
        program=result.program,
        state=lambda: compiled_state(result, settings.optimizer, demos=demos),
        spec=spec,
        summarise=lambda records: summarise(records, **bootstrap_of(to_mapping(settings.experiment))),
        pictures=write_pictures,
        metrics=lambda summary: {**compile_metrics(summary["compile"]), **flat_metrics(summary)},
        name=f"compile {settings.optimizer.name} {settings.system.name}/{settings.ablation.name}/{settings.lm.name}",
        facts=facts,
        corpus=program.retriever.describe(),
        tags=tags,
    )


def compile_metrics(document: dict[str, Any]) -> dict[str, float | None]:
    """Returns a compilation's figures under the names that a tracker shows."""
    metrics: dict[str, float | None] = {
        f"spent/{unit}": document["spent"][unit] for unit in ("calls", "tokens", "cost")
    }
    for split in ("validation", "test"):
        measured = document[split]
        if measured is None:
            continue
        for side in ("before", "after", "difference"):
            own = measured[side]
            low, high = own["ci95"] or (None, None)
            name = f"compile/{split}_{side}"
            metrics |= {name: own["value"], f"{name}_low": low, f"{name}_high": high}
    return metrics


def _write_records(settings: Settings, store: RunStore, measured: Measured, spec: dict[str, Any]) -> None:
    """Writes the kept program's audits as the run's records, the uncompiled one's beside them, and compares both."""
    kind = PairKind(final_phase_of(settings))

    def plain(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        rows = [{**record, "seconds": 0.0, "position": place} for place, record in enumerate(records)]
        return rows if settings.tracking.store_text else [kind.without_texts(row) for row in rows]

    before, after = plain(measured.before.records), plain(measured.after.records)
    (store.folder / "records.jsonl").write_bytes(b"")  # a start that was cut short here may have kept another program
    store.append(*after)
    lines = (json.dumps(row, ensure_ascii=False) for row in before)
    (store.folder / UNCOMPILED).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    write_comparison(store.folder, measured, spec, before, after)
