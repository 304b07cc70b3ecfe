"""Runs of the evaluation loop: their plan, their spec, and their report rebuilt from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.chat_request import ChatRequest
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.requests import load_requests
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.roles import build_lms
from dspy_mama.optimize import program_state
from dspy_mama.reporting.figures import to_png
from dspy_mama.reporting.refinement import loop_metrics, summarise_loop
from dspy_mama.reporting.refinement_figures import loop_figures
from dspy_mama.reporting.refinement_html import write_refinement
from dspy_mama.runtime.failures import describe
from dspy_mama.settings import Settings, to_mapping
from dspy_mama.systems.audit import ROLES as AUDIT_ROLES
from dspy_mama.systems.audit import RiskAuditor
from dspy_mama.systems.refine import (
    ROLES,
    SafetyRefiner,
    failed_request,
    refine_record,
    request_identity,
    request_key,
    retry_parts,
    with_spent,
    without_texts,
)
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.build import build_auditor_program, build_tracker, prompt_hashes
from dspy_mama.wiring.lifecycle import RunPlan, StudyResult, carry_out, spec_groups
from dspy_mama.wiring.refine_auditor import AuditorEvaluator
from dspy_mama.wiring.refine_trace import refine_layout
from dspy_mama.wiring.study import bootstrap_of

VERB: Final = "refine"
OTHER_SYSTEMS: Final = ("panel", "baseline", "optimizer")
"""Groups of settings that the loop does not read."""
AUDITOR_GROUPS: Final = ("system", "ablation", "embedder", "retriever", "corpus")
"""Groups that it reads only where it asks the auditor."""

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RequestKind:
    """Requests to answer or answers to mend, as a run of the loop takes them."""

    @property
    def noun(self) -> str:
        """`answer`."""
        return "answer"

    def key(self, item: ChatRequest, repeat: int) -> str:
        """Returns `request_key`."""
        return request_key(item, repeat)

    def identity(self, item: ChatRequest, repeat: int, store_text: bool) -> Record:
        """Returns ids, principle and, where they are kept, the texts."""
        return request_identity(item, repeat, store_text)

    def failed(self, item: ChatRequest, error: BaseException, repeat: int, store_text: bool) -> Record:
        """Returns a record whose outcomes are all `infra`."""
        return failed_request(item, describe(error), repeat, store_text)

    def without_texts(self, record: Mapping[str, Any]) -> Record:
        """Returns the record without texts and without reasons that may quote them."""
        return without_texts(record)


class Programs(AsyncModule):
    """The loop and, where it is asked, the auditor as one program, so that prompts and models of both are known."""

    def __init__(self, refiner: SafetyRefiner, auditor: RiskAuditor | None) -> None:
        """Holds them."""
        super().__init__()
        self.refiner, self.auditor = refiner, auditor


def uses_auditor(settings: Settings) -> bool:
    """Tells whether the loop asks system A: as evaluator, as gate, or both."""
    return settings.refiner.auditor or settings.refiner.gate == "auditor"


def build_refiner(settings: Settings, lms: Mapping[str, Any] | None = None) -> Programs:
    """Makes the loop with its LMs bound to roles.

    Args:
        settings: The run.
        lms: LMs by role; None = those of the settings.

    Raises:
        DeclarationError: A role is unknown, a criteria pack or the index is missing, or an LM's key is not set.
    """
    bare = SafetyRefiner(settings.refiner)
    roles = {*ROLES, *(predictor.role for _, predictor in bare.named_predictors())}
    known = roles | set(AUDIT_ROLES) if uses_auditor(settings) else roles
    if unknown := sorted(set(settings.lm.roles) - known):
        raise DeclarationError(f"lm.roles: unknown role(s) {unknown}; roles are {', '.join(sorted(known))}")
    made = lms or build_lms(settings.lm)
    auditor = None
    if uses_auditor(settings):
        auditor = build_auditor_program(_for_auditor(settings), lms=_of(made, AUDIT_ROLES))
    third = AuditorEvaluator(auditor) if auditor is not None else None
    refiner = SafetyRefiner(
        settings.refiner,
        evaluators=[third] if third and settings.refiner.auditor else (),
        gate=third if third and settings.refiner.gate == "auditor" else None,
    )
    return Programs(refiner.set_lms(_of(made, roles)), auditor)


def _for_auditor(settings: Settings) -> Settings:
    """Returns the settings with the auditor's own roles alone, which its builder checks."""
    from dataclasses import replace

    roles = _of(settings.lm.roles, AUDIT_ROLES)
    return replace(settings, lm=replace(settings.lm, roles=roles))


def _of(by_role: Mapping[str, Any], roles: Any) -> dict[str, Any]:
    return {role: own for role, own in by_role.items() if role in roles or role == "default"}


async def run_refinement(
    settings: Settings,
    *,
    verb: str = VERB,
    requests: Sequence[ChatRequest] | None = None,
    tags: Mapping[str, str] | None = None,
) -> StudyResult:
    """Mends what the settings name and writes everything a run leaves.

    Args:
        settings: The run.
        verb: What it is called in the records.
        requests: Requests, with or without an answer to mend; None = those of `settings.data`.
        tags: Further tags of the run in the tracker.

    Raises:
        DeclarationError: Settings, data, criteria, index or LM are at fault.
        TooManyFailuresError: Answer after answer failed on infrastructure.
    """
    build_tracker(settings, refine_layout)  # an address that MLflow refuses is found before anything is loaded
    facts: dict[str, Any] = {}
    if requests is None:
        loaded = load_requests(settings.data)
        requests, facts = loaded.requests, loaded.facts
    return await carry_out(refine_plan(settings, build_refiner(settings), requests, verb, facts=facts, tags=tags))


def refine_plan(
    settings: Settings,
    program: Programs,
    requests: Sequence[ChatRequest],
    verb: str = VERB,
    *,
    facts: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
) -> RunPlan[ChatRequest]:
    """Returns the plan of a run of the loop: one record an answer."""

    async def work(request: ChatRequest) -> Record:
        found = await program.refiner.acall(question=request.question, answer=request.answer, history=request.history)
        return refine_record(request, found)

    async def work_again(request: ChatRequest, earlier: Record) -> Record:
        mended = await retry_parts(program.refiner, request, earlier)
        return mended if mended is not None else with_spent(await work(request), earlier)

    study = to_mapping(settings.experiment)
    return RunPlan(
        settings=settings,
        verb=verb,
        items=requests,
        kind=RequestKind(),
        work=work,
        work_again=work_again,
        program=program,
        state=lambda: _state(program),
        spec=_spec(settings, dict(facts or {}), program, verb),
        summarise=lambda records: summarise_loop(records, **_options(study)),
        pictures=write_pictures,
        metrics=loop_metrics,
        name=f"refine/{settings.refiner.name}/{settings.lm.name}",
        words=("refined", "answer"),
        outcome_noun="scores",
        facts=facts or {},
        corpus=program.auditor.retriever.describe() if program.auditor is not None else None,
        tags={"system": "refine", "refiner": settings.refiner.name, **(tags or {})},
        trace=refine_layout,
    )


def _state(program: Programs) -> dict[str, Any]:
    """Returns the loop as `load_program` takes it; an auditor beside it is kept under its own name."""
    own = program_state(program.refiner)
    return own if program.auditor is None else {**own, "auditor": program_state(program.auditor)}


def _spec(settings: Settings, facts: dict[str, Any], program: Programs, verb: str) -> dict[str, Any]:
    """Returns the settings that have a part in the records, and the hashes of what they name."""
    without = OTHER_SYSTEMS if uses_auditor(settings) else (*OTHER_SYSTEMS, *AUDITOR_GROUPS)
    data = {key: facts.get(key) for key in ("files", "selected", "principles")}
    own = {"data_facts": data, "criteria": program.refiner.criteria.describe(), "prompts": prompt_hashes(program)}
    if program.auditor is not None:
        own["evidence"] = dict(program.auditor.retriever.describe())
    return {"name": verb, **spec_groups(settings, without), **own}


def _options(study: Mapping[str, Any]) -> dict[str, Any]:
    own = bootstrap_of(study)
    return {name: own[name] for name in ("seed", "resamples", "method")}


def write_pictures(folder: Path, records: Sequence[Record], summary: Record, spec: Record) -> Path:
    """Writes figures and the HTML report of a run into its folder, and returns the report's path."""
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    for name, figure in loop_figures(summary).items():
        (figures / f"{name}.png").write_bytes(to_png(figure))
    refiner, lm, data = (str((spec.get(group) or {}).get("name")) for group in ("refiner", "lm", "data"))
    split = (spec.get("data") or {}).get("split")
    context = [f"Run {folder.name}", f"Loop {refiner}, LM {lm}, data {data}" + (f", split {split}" if split else "")]
    return write_refinement(folder / "report.html", records, summary, context=context)


def rebuild(folder: Path) -> tuple[Record, Path]:
    """Makes summary, figures and report of a run anew, from its spec and records alone.

    Returns:
        The summary, and the path of the report.

    Raises:
        DeclarationError: The folder is no run, or it holds no record.
    """
    spec, records = _read(folder)
    summary = summarise_loop(records, **_options(spec.get("experiment", {})))
    return summary, write_pictures(folder, records, summary, spec)


def summary_of(folder: Path) -> Record:
    """Returns what a run's records come to, also where it is not complete.

    Raises:
        DeclarationError: The folder is no run, or it holds no record.
    """
    spec, records = _read(folder)
    return summarise_loop(records, **_options(spec.get("experiment", {})))


def _read(folder: Path) -> tuple[Record, Sequence[Record]]:
    store = RunStore.open(folder)
    spec, records = store.load("spec"), store.records()
    if not records:
        raise DeclarationError(f"{folder}: holds no record; run mama refine first")
    return spec, records
