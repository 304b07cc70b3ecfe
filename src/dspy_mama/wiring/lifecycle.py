"""The life of a run, the same for every system: items to records, summary, five files, report, tracker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from dspy_mama.core.ids import object_hash
from dspy_mama.runtime import ItemKind, RunResult, UnscoredRate, check_unscored, make_progress, run_items
from dspy_mama.settings import Settings, to_mapping
from dspy_mama.tracking import RunStore, TraceLayout, build_manifest, is_finished, spec_hash
from dspy_mama.tracking.mlflow_traces import audit_layout
from dspy_mama.wiring.build import build_tracker, model_facts, pairs_in_flight, prompt_hashes, served_requests

Item = TypeVar("Item")
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What a run gave.

    Attributes:
        folder: The run's folder.
        summary: `summary.json`; empty where the run was interrupted.
        unscored: Share of final outcomes without a value, and its limit.
        run: How the run ended.
        tracked: Id of the run in the tracker, or "".
        problems: What could not be logged.
        resumed: Items that an earlier start of the same run had finished.
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
    records: tuple[Record, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 done, 1 interrupted, 3 too many outcomes unscored."""
        return 1 if self.run.interrupted else 3 if self.unscored.exceeded else 0


@dataclass(frozen=True)
class RunPlan(Generic[Item]):
    """Everything that makes one system's run differ from another's.

    Attributes:
        settings: The run.
        verb: What it is called in the records.
        items: What to work on.
        kind: How items are known and what their failures look like.
        work: Works on one item and returns its record.
        program: What works, with named predictors; its prompts and LMs go into the manifest.
        state: Gives `program.json`.
        spec: `spec.json`: the settings, and whatever else the records depend on.
        summarise: From records to `summary.json`.
        pictures: Writes figures and report into the folder, from (folder, records, summary, spec).
        metrics: From the summary to the tracker's numbers.
        name: What the run is called in the tracker, before the folder's name.
        words: What is done to what, for the progress line, such as `("audited", "pair")`.
        outcome_noun: What `runtime.max_unscored_rate` counts, in the plural.
        facts: What is known of the data, for the manifest.
        corpus: What identifies the index, or None.
        tags: Tags of the run in the tracker.
        trace: How a record is shown as a trace.
        repeats: How often every item is worked on.
        work_for: Gives the work of a repeat, where repeats need LMs of their own; None = `work` for all.
        work_again: Works on an item of which there is a record that is not finished, so that what was paid for need
            not be paid for twice; None = `work` as if it were new.
    """

    settings: Settings
    verb: str
    items: Sequence[Item]
    kind: ItemKind[Item]
    work: Callable[[Item], Awaitable[Record]]
    program: Any
    state: Callable[[], dict[str, Any]]
    spec: Mapping[str, Any]
    summarise: Callable[[Sequence[Record]], dict[str, Any]]
    pictures: Callable[[Path, Sequence[Record], dict[str, Any], dict[str, Any]], Path]
    metrics: Callable[[Mapping[str, Any]], Mapping[str, float | None]]
    name: str
    words: tuple[str, str] = ("audited", "pair")
    outcome_noun: str = "verdicts"
    facts: Mapping[str, Any] = field(default_factory=dict)
    corpus: Mapping[str, Any] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    trace: TraceLayout = audit_layout
    repeats: int = 1
    work_for: Callable[[int], Callable[[Item], Awaitable[Record]]] | None = None
    work_again: Callable[[Item, Record], Awaitable[Record]] | None = None


def spec_groups(settings: Settings, without: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the settings as plain data but for the groups that have no part in a system's records.

    Args:
        settings: The run.
        without: Groups to leave out: a change of theirs then makes no other run, and the tracker does not show them.
    """
    return {group: values for group, values in to_mapping(settings).items() if group not in without}


async def carry_out(plan: RunPlan[Item]) -> StudyResult:
    """Starts or resumes the run of a plan and writes everything that a run leaves.

    Raises:
        DeclarationError: Settings or LM are at fault.
        TooManyFailuresError: Item after item failed on infrastructure.
        ExecutionError: A record could not be written.
    """
    settings = plan.settings
    build_tracker(settings)  # an address that MLflow refuses is found before the first token is spent
    started = datetime.now(UTC)
    with RunStore.start(settings.tracking.root, plan.spec, resume=settings.runtime.resume) as store:
        result = await do_items(plan, store)
        records = store.records()
        unscored = check_unscored(records, settings.runtime.max_unscored_rate, plan.outcome_noun)
        requests = served_requests(plan.program)
        if result.interrupted:
            return StudyResult(store.folder, {}, unscored, result, resumed=result.skipped, requests=requests)
        summary = plan.summarise(records)
        write_parts(plan, store, started)
        plan.pictures(store.folder, records, summary, store.load("spec"))
        # A run is complete when all five files are there. One that fails for want of a server is not: the same
        # command goes on from it, asks again for the items that failed, and repeats no other.
        if not (result.failed and (unscored.exceeded or any(record.get("retry") for record in records))):
            store.write("summary", summary)
        tracked, problems = track(plan, store, summary, records, failed=unscored.exceeded)
    return StudyResult(store.folder, summary, unscored, result, tracked, problems, result.skipped, requests, records)


async def do_items(plan: RunPlan[Item], store: RunStore) -> RunResult:
    """Works on the items that the store does not hold yet, repeat by repeat.

    Raises:
        DeclarationError: Settings or LM are at fault.
        TooManyFailuresError: Item after item failed on infrastructure.
    """
    total = RunResult(0, 0, 0, False, 0.0)
    for repeat in range(plan.repeats):
        work = plan.work_for(repeat) if plan.work_for else plan.work
        total = _joined(total, await do_repeat(replace(plan, work=work), store, repeat))
        if total.interrupted:
            break
    return total


async def do_repeat(plan: RunPlan[Item], store: RunStore, repeat: int) -> RunResult:
    """Does the plan's work on the items that the store does not hold yet in one repeat.

    Raises:
        DeclarationError: Settings or LM are at fault.
        TooManyFailuresError: Item after item failed on infrastructure.
    """
    import dspy

    settings = plan.settings
    # DSPy's history keeps whole prompts and replies of patients' texts in memory; the records hold what is needed.
    with dspy.context(disable_history=True):
        return await run_items(
            plan.items,
            _work_of(plan, store, repeat),
            store,
            replace(settings.runtime, concurrency=pairs_in_flight(settings)),
            kind=plan.kind,
            repeat=repeat,
            store_text=settings.tracking.store_text,
            progress=make_progress(settings.runtime.progress, words=plan.words),
        )


def _work_of(plan: RunPlan[Item], store: RunStore, repeat: int) -> Callable[[Item], Awaitable[Record]]:
    """Returns the work of a plan, which goes on from records that are not finished where the plan knows how."""
    again = plan.work_again
    if again is None:
        return plan.work
    unfinished = {record["key"]: record for record in store.records() if not is_finished(record)}

    async def work(item: Item) -> Record:
        earlier = unfinished.get(plan.kind.key(item, repeat))
        return await (plan.work(item) if earlier is None else again(item, earlier))

    return work


def _joined(one: RunResult, two: RunResult) -> RunResult:
    return RunResult(
        one.done + two.done,
        one.skipped + two.skipped,
        one.failed + two.failed,
        one.interrupted or two.interrupted,
        one.seconds + two.seconds,
    )


def write_parts(plan: RunPlan[Item], store: RunStore, started: datetime) -> None:
    """Writes program and manifest of a run; its summary is written last, by the caller."""
    settings = plan.settings
    store.write("program", plan.state())
    manifest = build_manifest(
        plan.spec,
        started,
        data=[Path(settings.data.path)] if settings.data.path else [],
        corpus=plan.corpus,
        models=model_facts(settings, plan.program),
        prompts=prompt_hashes(plan.program),
    )
    store.write("manifest", {**manifest, "data_facts": dict(plan.facts)})


def track(
    plan: RunPlan[Item], store: RunStore, summary: Mapping[str, Any], records: Sequence[Record], *, failed: bool
) -> tuple[str, tuple[str, ...]]:
    """Logs a run to the tracker.

    Returns:
        The run's id in the tracker ("" without one), and what could not be logged.
    """
    settings = plan.settings
    tracker = build_tracker(settings, plan.trace)
    spec = store.load("spec")
    own = {
        "study": plan.verb,
        "lm": settings.lm.name,
        "data": settings.data.name,
        "data_hash": object_hash(spec.get("data_facts"), 16),
        "spec_hash": spec_hash(spec),
        "run_folder": store.run_id,
    }
    # With the folder's name in it, a second run of the same settings is a run of its own.
    params = {group: values for group, values in to_mapping(settings).items() if group in spec}
    run_id = tracker.start(f"{plan.name} {store.run_id}", params, {**own, **plan.tags})
    tracker.log_metrics(dict(plan.metrics(summary)))
    tracker.log_artifacts(str(store.folder))
    if settings.tracking.traces > 0:
        for record in records:
            tracker.log_trace(record)
    tracker.finish("FAILED" if failed else "FINISHED")
    return run_id or "", tuple(tracker.problems)
