"""The same pairs audited several times under several settings, each repeat by calls of its own."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ports import Retriever
from dspy_mama.datasets import LoadedPairs, load_pairs
from dspy_mama.lm.repeats import lms_for_repeat
from dspy_mama.lm.roles import build_lms
from dspy_mama.reporting import flat_metrics, summarise
from dspy_mama.reporting.stability import (
    add_stability,
    by_repeat,
    compare_settings,
    repeat_metrics,
    stability_metrics,
)
from dspy_mama.runtime import UnscoredRate, check_unscored
from dspy_mama.settings import Settings, to_mapping
from dspy_mama.systems.audit import RiskAuditor
from dspy_mama.tracking import RunStore, spec_hash
from dspy_mama.wiring.build import build_auditor_program, build_retriever, build_tracker
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.lifecycle import RunPlan, do_repeat, write_parts
from dspy_mama.wiring.study import audit_plan, bootstrap_of, write_pictures

logger = logging.getLogger(__name__)

VERB = "stability"


@dataclass(frozen=True, slots=True)
class SettingRun:
    """All repeats of one setting.

    Attributes:
        name: What it varies, such as `lm.default.temperature=0.7`; `as given` where nothing is varied.
        folder: Its run folder, with the records of all repeats.
        summary: `summary.json`; its `stability` part is what `summarise_stability` builds. Empty if interrupted.
        unscored: Share of final verdicts without a value.
        done: Audits made by this start.
        resumed: Audits that an earlier start had made.
        failed: Audits that failed on infrastructure.
        interrupted: Whether a signal ended it.
    """

    name: str
    folder: Path
    summary: dict[str, Any]
    unscored: UnscoredRate
    done: int
    resumed: int
    failed: int
    interrupted: bool


@dataclass(frozen=True, slots=True)
class StabilityResult:
    """What a stability study gave.

    Attributes:
        settings: Each setting's runs, in the order of the grid.
        between: Agreement between settings (`compare_settings`), or None.
        tracked: Id of the study in the tracker, or "".
        problems: What could not be logged.
    """

    settings: tuple[SettingRun, ...]
    between: dict[str, Any] | None
    tracked: str = ""
    problems: tuple[str, ...] = ()

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended it; what is done is kept."""
        return any(setting.interrupted for setting in self.settings)

    @property
    def exit_code(self) -> int:
        """0 done, 1 interrupted, 3 too many verdicts unscored."""
        return 1 if self.interrupted else 3 if any(setting.unscored.exceeded for setting in self.settings) else 0


def grid(overrides: Sequence[str], vary: Sequence[str]) -> dict[str, Settings]:
    """Composes every combination of what is varied.

    Args:
        overrides: Settings that all share.
        vary: Such as `lm.default.temperature=0,0.7`; commas inside brackets and quotes do not part values.

    Returns:
        Settings by name.

    Raises:
        DeclarationError: A setting cannot be composed, or two combinations are the same.
    """
    axes = [_axis(option) for option in vary]
    named: dict[str, Settings] = {}
    hashes: dict[str, str] = {}
    for chosen in itertools.product(*axes):
        settings = compose([*overrides, *chosen])
        name = " ".join(chosen) or "as given"
        first = hashes.setdefault(spec_hash(to_mapping(settings)), name)
        if name in named or first != name:
            raise DeclarationError(f"--vary: {name} asks the LM for the same as {first}; vary what changes an answer")
        named[name] = settings
    return named


def _axis(option: str) -> list[str]:
    name, sign, values = option.partition("=")
    parts = re.findall(r"(?:\[[^\]]*\]|'[^']*'|[^,\[\]'])+", values)
    if not sign or not name or not parts:
        raise DeclarationError(f"--vary {option!r}: give group.field=value,value, such as lm.default.temperature=0,1")
    return [f"{name}={part.strip()}" for part in parts]


async def run_stability(named: Mapping[str, Settings], *, repeats: int, drop_faulty: bool = False) -> StabilityResult:
    """Audits every pair `repeats` times under every setting, and says how stable the labels are.

    No setting's run is complete before all are: the same command after a stop goes on where it was.

    Args:
        named: Settings by name (`grid`).
        repeats: Audits of each pair, at least 2.
        drop_faulty: Leave faulty rows of the data out instead of refusing the file.

    Raises:
        DeclarationError: Settings, data, index or LM are at fault, or there are too few repeats.
        TooManyFailuresError: Pair after pair failed on infrastructure.
    """
    if repeats < 2:
        raise DeclarationError(f"--repeats {repeats}: stability needs at least 2; 3 or more is usual")
    build_tracker(next(iter(named.values())))  # an address that MLflow refuses is found before the first token
    started = datetime.now(UTC)
    prepared = [_Setting(name, _independent(settings), repeats, drop_faulty) for name, settings in named.items()]
    runs = []
    for setting in prepared:
        runs.append(await setting.audit())
        if runs[-1].interrupted:
            return StabilityResult(tuple(runs), None)
    first = next(iter(named.values())).experiment
    records = {setting.name: setting.records() for setting in prepared}
    between = compare_settings(records, seed=first.seed, resamples=first.resamples)
    done = [setting.finish(run, records[setting.name], started) for setting, run in zip(prepared, runs, strict=True)]
    return _track(done, [setting.settings for setting in prepared], between)


def _independent(settings: Settings) -> Settings:
    """Returns settings under which every repeat asks for the specialist anew."""
    if settings.system.router.table is None:
        return settings
    logger.warning(
        "system.router.table is left aside: a repeat that takes its specialists from an earlier one is not "
        "independent; a curated system.router.mapping holds them fixed"
    )
    return replace(settings, system=replace(settings.system, router=replace(settings.system.router, table=None)))


class _Setting:
    """One setting's repeats: audited first, summed up when all settings are through."""

    def __init__(self, name: str, settings: Settings, repeats: int, drop_faulty: bool) -> None:
        self.name, self.settings, self.repeats = name, settings, repeats
        self._loaded: LoadedPairs = load_pairs(settings.data, on_fault="drop" if drop_faulty else "raise")
        for fault in self._loaded.faults:
            logger.warning("left out: %s", fault)
        self._folder = Path()
        self._program: RiskAuditor

    def _programs(self, retriever: Retriever) -> Iterator[RiskAuditor]:
        """Yields a program per repeat: LMs that share no reply and a router that remembers nothing."""
        lms = build_lms(self.settings.lm)
        for repeat in range(self.repeats):
            program = build_auditor_program(self.settings, retriever, lms_for_repeat(lms, repeat))
            self._program = program
            yield program

    def _plan(self, program: RiskAuditor) -> RunPlan[QAPair]:
        return audit_plan(self.settings, program, self._loaded.pairs, VERB, facts=self._loaded.facts)

    async def audit(self) -> SettingRun:
        programs = self._programs(build_retriever(self.settings))
        program = next(programs)
        spec = {**self._plan(program).spec, "repeats": self.repeats}
        done = skipped = failed = 0
        interrupted = False
        with RunStore.start(self.settings.tracking.root, spec, resume=self.settings.runtime.resume) as store:
            self._folder = store.folder
            for repeat, auditor in enumerate(itertools.chain([program], programs)):
                result = await do_repeat(self._plan(auditor), store, repeat)
                done, skipped, failed = done + result.done, skipped + result.skipped, failed + result.failed
                if interrupted := result.interrupted:
                    break
            unscored = check_unscored(store.records(), self.settings.runtime.max_unscored_rate)
        return SettingRun(self.name, store.folder, {}, unscored, done, skipped, failed, interrupted)

    def records(self) -> tuple[dict[str, Any], ...]:
        """Returns the records of all repeats, repeat by repeat in the order of the data."""
        return RunStore.open(self._folder).records()

    def finish(self, run: SettingRun, records: Sequence[dict[str, Any]], started: datetime) -> SettingRun:
        """Writes what a run leaves; a run that fails for want of a server stays open and goes on next time."""
        options = bootstrap_of(to_mapping(self.settings.experiment))
        summary = add_stability(summarise(records, **options), records)
        with RunStore.resume(self._folder) as store:
            spec = store.load("spec")
            write_parts(replace(self._plan(self._program), spec=spec), store, started)
            write_pictures(store.folder, records, summary, spec)
            if not (run.failed and run.unscored.exceeded):
                store.write("summary", summary)
        return replace(run, summary=summary)


def _track(runs: Sequence[SettingRun], settings: Sequence[Settings], between: dict[str, Any] | None) -> StabilityResult:
    """Logs the study as a run, its settings as runs inside it, and their repeats inside those."""
    problems: list[str] = []
    study = _log(settings[0], f"stability {runs[0].folder.name}", "", _between_metrics(between), problems)
    for run, own in zip(runs, settings, strict=True):
        metrics = flat_metrics(run.summary) | stability_metrics(run.summary["stability"])
        inner = _log(own, f"{run.name} {run.folder.name}", study, metrics, problems, run)
        for repeat, records in by_repeat(RunStore.open(run.folder).records()).items():
            _log(own, f"repeat {repeat} {run.folder.name}", inner, repeat_metrics(records), problems)
    return StabilityResult(tuple(runs), between, study, tuple(problems))


def _between_metrics(between: Mapping[str, Any] | None) -> dict[str, float | None]:
    return {
        f"between/{domain}/{name}": own[name]
        for domain, own in (between or {"domains": {}})["domains"].items()
        for name in ("fleiss_kappa", "flip_rate", "flipped", "n")
    }


def _log(
    settings: Settings,
    name: str,
    parent: str,
    metrics: Mapping[str, float | None],
    problems: list[str],
    run: SettingRun | None = None,
) -> str:
    tracker = build_tracker(settings)
    tags = {
        "study": VERB,
        "system": settings.system.name,
        "ablation": settings.ablation.name,
        "lm": settings.lm.name,
        "data": settings.data.name,
        **({"mlflow.parentRunId": parent} if parent else {}),
        **({"run_folder": run.folder.name, "setting": run.name} if run else {}),
    }
    run_id = tracker.start(name, to_mapping(settings) if run else {}, tags)
    tracker.log_metrics(metrics)
    if run:
        tracker.log_artifacts(str(run.folder))
    tracker.finish("FAILED" if run and run.unscored.exceeded else "FINISHED")
    problems.extend(tracker.problems)
    return run_id or ""
