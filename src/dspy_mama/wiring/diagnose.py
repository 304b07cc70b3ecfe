"""Diagnosis runs: their plan, their spec, a second grading of a finished one, and their report rebuilt from records."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.disease_knowledge import KNOWLEDGE
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import file_hash
from dspy_mama.core.patient_case import PatientCase
from dspy_mama.datasets.ratings import read_synonyms
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.repeats import lms_for_repeat
from dspy_mama.lm.roles import build_lms
from dspy_mama.reporting.diagnosis import diagnosis_metrics, summarise_diagnoses
from dspy_mama.reporting.diagnosis_html import write_diagnosis_report
from dspy_mama.scoring.disease_match import synonym_table
from dspy_mama.settings import Settings, to_mapping
from dspy_mama.settings.grading import GradingSettings
from dspy_mama.systems.mac import ROLES, DiagnosisItem, diagnosis_record, knowledge_record
from dspy_mama.systems.mac.grading import Grader
from dspy_mama.systems.mac.grading_record import graded
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.build import predictors_of, prompt_hashes
from dspy_mama.wiring.diagnosis_items import DiagnosisKind, items_of, load_items
from dspy_mama.wiring.diagnosis_trace import diagnosis_layout
from dspy_mama.wiring.lifecycle import RunPlan, StudyResult, carry_out, spec_groups
from dspy_mama.wiring.panel_methods import build_knowledge, build_methods
from dspy_mama.wiring.study import bootstrap_of

logger = logging.getLogger(__name__)

VERB: Final = "diagnose"
GRADE_VERB: Final = "grade"
OTHER_SYSTEMS: Final = (
    "system", "ablation", "embedder", "retriever", "corpus", "baseline", "refiner", "optimizer",
)  # fmt: skip
"""Groups of settings that a diagnosis does not read."""

Record = dict[str, Any]


class Programs(AsyncModule):
    """The compared methods and their grader as one program, so that prompts and models of all are known by name."""

    def __init__(self, settings: Settings, lms: Mapping[str, Any]) -> None:
        """Makes them.

        Args:
            settings: The run.
            lms: LMs by role.
        """
        super().__init__()
        panel = settings.panel
        asked = {stage == KNOWLEDGE for stage in panel.stages}
        self.methods = build_methods(panel, lms) if False in asked else {}
        self.knowledge = build_knowledge(panel, lms) if True in asked else {}
        self.grader = Grader(panel.grading, lms) if panel.grading.kind == "lm" else None

    async def record_of(self, item: DiagnosisItem, repeat: int = 0) -> Record:
        """Returns what a method says of a case or a disease, not graded yet."""
        if item.stage == KNOWLEDGE:
            answer = await self.knowledge[item.method].acall(disease=item.text)
            return knowledge_record(item, answer, repeat=repeat)
        prediction = await self.methods[item.method].acall(case=item.case, stage=item.stage)
        return diagnosis_record(item, prediction, repeat=repeat)


def _check_roles(settings: Settings) -> None:
    single = [f"doctor_{number}" for number in range(1, settings.panel.doctors + 1)]
    known = (*ROLES, *single, "grader")
    if unknown := sorted(set(settings.lm.roles) - set(known)):
        raise DeclarationError(f"lm.roles: unknown role(s) {unknown}; roles are {', '.join(known)}")


def synonyms_of(grading: GradingSettings) -> dict[str, str]:
    """Returns the matcher's dictionary."""
    return synonym_table(read_synonyms(Path(grading.synonyms))) if grading.synonyms else {}


def grading_files(grading: GradingSettings) -> dict[str, str]:
    """Returns a hash of the dictionary, which the records depend on."""
    return {"synonyms": file_hash(Path(grading.synonyms))} if grading.synonyms else {}


def self_grading(settings: Settings) -> str | None:
    """Returns a warning where the grader is the doctors' own model, or None."""
    roles = {"default": settings.lm.default, **settings.lm.roles}
    grader, doctor = (roles.get(role, settings.lm.default) for role in ("grader", "doctor"))
    if settings.panel.grading.kind == "none" or (grader.model, grader.model_path) != (doctor.model, doctor.model_path):
        return None
    return (
        f"{grader.model} grades its own diagnoses: models favour their own words. Name another LM as "
        "lm.roles.grader, or read the grades beside the matcher's and people's"
    )


async def run_diagnoses(
    settings: Settings,
    *,
    verb: str = VERB,
    cases: Sequence[PatientCase] | None = None,
    tags: Mapping[str, str] | None = None,
) -> StudyResult:
    """Diagnoses the cases that the settings name by every method at every stage, grades, and writes the run.

    Args:
        settings: The run.
        verb: What it is called in the records.
        cases: Cases to diagnose; None = those of `settings.data`.
        tags: Further tags of the run in the tracker.

    Raises:
        DeclarationError: Settings, data or LM are at fault.
        TooManyFailuresError: Case after case failed on infrastructure.
    """
    _check_roles(settings)
    facts: dict[str, Any] = {}
    if cases is None:
        cases, facts = load_items(settings.data, settings.panel)
    return await carry_out(diagnosis_plan(settings, cases, verb, facts=facts, tags=tags))


def diagnosis_plan(
    settings: Settings,
    cases: Sequence[PatientCase],
    verb: str = VERB,
    *,
    facts: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
) -> RunPlan[DiagnosisItem]:
    """Returns the plan of a diagnosis run: one record a case, stage, method and repeat, its grades within it.

    Raises:
        DeclarationError: A file of the grading is at fault, a role is unknown, or no stage of any case can be asked.
    """
    panel, lms = settings.panel, build_lms(settings.lm)
    items = items_of(panel, cases)
    program = Programs(settings, lms)
    synonyms = synonyms_of(panel.grading)

    def work_for(repeat: int) -> Callable[[DiagnosisItem], Awaitable[Record]]:
        own = program if panel.repeats == 1 else Programs(settings, lms_for_repeat(lms, repeat))

        async def work(item: DiagnosisItem) -> Record:
            return await graded(await own.record_of(item, repeat), own.grader, synonyms)

        return work

    return RunPlan(
        settings=settings,
        verb=verb,
        items=items,
        kind=DiagnosisKind(),
        work=work_for(0),
        work_for=work_for,
        repeats=panel.repeats,
        program=program,
        state=lambda: state_of(program),
        spec=_spec(settings, dict(facts or {}), program, verb),
        summarise=lambda records: summary_of(records, to_mapping(settings)),
        pictures=write_pictures,
        metrics=diagnosis_metrics,
        name=f"{panel.name}/{settings.lm.name}",
        words=("diagnosed", "diagnosis"),
        outcome_noun="outcomes",
        facts=facts or {},
        tags={"system": "diagnosis", "panel": panel.name, "methods": ",".join(panel.methods), **(tags or {})},
        trace=diagnosis_layout,
    )


def state_of(program: Any) -> dict[str, Any]:
    """Returns the prompts and demonstrations of every predictor, without LMs."""
    parts: dict[str, Any] = {}
    for name, predictor in predictors_of(program):
        part = predictor.reset_copy()
        part.lm, part.demos = None, predictor.demos
        state = part.dump_state(json_mode=True)
        parts[name] = {key: state[key] for key in ("signature", "demos") if key in state}
    return {"system": "diagnosis", "state": parts}


def _spec(settings: Settings, facts: dict[str, Any], program: Programs, verb: str) -> dict[str, Any]:
    groups = spec_groups(settings, OTHER_SYSTEMS)
    data = {key: facts.get(key) for key in ("files", "selected")}
    files = grading_files(settings.panel.grading)
    return {"name": verb, **groups, "data_facts": data, "grading_files": files, "prompts": prompt_hashes(program)}


def summary_of(records: Sequence[Record], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the summary of records, with intervals as the spec's experiment says."""
    study = bootstrap_of(spec.get("experiment", {}))
    options = {name: study[name] for name in ("seed", "resamples", "method")}
    return summarise_diagnoses(records, **options)


def write_pictures(folder: Path, records: Sequence[Record], summary: Record, spec: Record) -> Path:
    """Writes the HTML report of a run into its folder, and returns its path."""
    panel, lm, data = (str((spec.get(group) or {}).get("name")) for group in ("panel", "lm", "data"))
    context = [f"Run {folder.name}", f"Panel {panel}, LM {lm}, data {data}"]
    return write_diagnosis_report(folder / "report.html", records, summary, context=context)


def rebuild(folder: Path) -> tuple[dict[str, Any], Path]:
    """Makes summary and report of a run anew, from its spec and records alone.

    Returns:
        The summary, and the path of the report.

    Raises:
        DeclarationError: The folder is no run, or it holds no record.
    """
    store = RunStore.open(folder)
    spec, records = store.load("spec"), store.records()
    if not records:
        raise DeclarationError(f"{folder}: holds no record; run the diagnosis first")
    summary = summary_of(records, spec)
    return summary, write_pictures(folder, records, summary, spec)
