"""What is done with a finished diagnosis run: a second grading, and people's ratings beside its grades."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.ratings import read_case_ratings
from dspy_mama.lm.roles import build_lms
from dspy_mama.reporting.diagnosis import diagnosis_metrics
from dspy_mama.reporting.diagnosis_grader import people_beside_grader
from dspy_mama.runtime.failures import describe
from dspy_mama.settings import DataSettings, Settings, from_mapping, to_mapping
from dspy_mama.systems.mac.grading import Grader
from dspy_mama.systems.mac.grading_record import graded
from dspy_mama.systems.mac.knowledge_record import is_knowledge
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.build import prompt_hashes
from dspy_mama.wiring.diagnose import (
    GRADE_VERB,
    OTHER_SYSTEMS,
    VERB,
    Record,
    grading_files,
    state_of,
    summary_of,
    synonyms_of,
    write_pictures,
)
from dspy_mama.wiring.diagnosis_items import DiagnosisKind
from dspy_mama.wiring.diagnosis_trace import diagnosis_layout
from dspy_mama.wiring.lifecycle import RunPlan, StudyResult, carry_out, spec_groups

logger = logging.getLogger(__name__)


def rate_run(folder: Path, ratings: Path) -> tuple[dict[str, Any], Path]:
    """Holds the grades of a run against people's ratings of the same answers.

    Args:
        folder: A run of `mama diagnose`.
        ratings: csv or jsonl with the columns `id` (of the record), `unit`, `score`, `rater`, and `repeat` where
            cases were repeated.

    Returns:
        What `people_beside_grader` says, and the file in the run's folder that keeps it.

    Raises:
        DeclarationError: The folder is no run of this kind, or no rating is of an answer that it graded.
        DataError: The ratings cannot be read, or rows have faults.
    """
    store = RunStore.open(folder)
    records = store.records()
    if store.load("spec").get("name") not in (VERB, GRADE_VERB):
        raise DeclarationError(f"{folder}: holds no diagnoses; name a run of `mama diagnose`")
    found = people_beside_grader(records, read_case_ratings(ratings))
    if found is None or not found["units"]:
        raise DeclarationError(
            f"{ratings}: no rating is of an answer that this run graded; ids are those of its records"
        )
    target = folder / "people.json"
    target.write_text(json.dumps(found, ensure_ascii=False, allow_nan=False), encoding="utf-8")
    return found, target


@dataclass(frozen=True, slots=True)
class RecordKind:
    """Finished diagnoses, as a second grading takes them: known by their own key."""

    @property
    def noun(self) -> str:
        """`diagnosis`."""
        return "diagnosis"

    def key(self, item: Record, repeat: int) -> str:
        """Returns the record's own key."""
        return str(item["key"])

    def identity(self, item: Record, repeat: int, store_text: bool) -> Record:
        """Returns nothing: the record is whole."""
        return {}

    def failed(self, item: Record, error: BaseException, repeat: int, store_text: bool) -> Record:
        """Returns the record ungraded, with every outcome `infra`, so that a resumed run grades it again."""
        return {**item, "outcomes": {"diagnosis": "infra"}, "error": describe(error)}

    def without_texts(self, record: Mapping[str, Any]) -> Record:
        """Returns the record without the case, arguments and reasons."""
        return DiagnosisKind().without_texts(record)


async def run_grading(settings: Settings, folder: Path, *, tags: Mapping[str, str] | None = None) -> StudyResult:
    """Grades the diagnoses of a run once more, with the grader that the settings name, as a run of its own.

    Args:
        settings: `panel.grading` and the LM of the role `grader`.
        folder: A run of `mama diagnose`; its records stay as they are.
        tags: Further tags of the run in the tracker.

    Raises:
        DeclarationError: The folder is no such run, no grader is named, or the run keeps no texts to be graded.
        TooManyFailuresError: Record after record failed on infrastructure.
    """
    if settings.panel.grading.kind == "none":
        raise DeclarationError("panel.grading.kind=none: grading needs a grader; take panel.grading.kind=lm")
    store = RunStore.open(folder)
    source, records = store.load("spec"), store.records()
    if source.get("name") not in (VERB, GRADE_VERB) or not records:
        raise DeclarationError(f"{folder}: holds no diagnoses; name a run of `mama diagnose`")
    if all(is_knowledge(record) and "case" not in record for record in records):
        raise DeclarationError(f"{folder}: keeps no texts (tracking.store_text=false): there is no entry to grade")
    if any(record["stage"] == "primary" and "case" not in record for record in records):
        logger.warning("the run keeps no texts: tests are graded without the case")
    return await carry_out(_grading_plan(settings, folder, source, list(records), tags or {}))


def _data_of(spec: Record) -> DataSettings:
    """Returns the data of a run; a file that is no longer there is not asked for."""
    data = from_mapping(DataSettings, spec["data"])
    return data if data.path and Path(data.path).exists() else replace(data, path=None)


def _grading_plan(
    settings: Settings, folder: Path, source: Record, records: Sequence[Record], tags: Mapping[str, str]
) -> RunPlan[Record]:
    grading = settings.panel.grading
    grader, synonyms = Grader(grading, build_lms(settings.lm)), synonyms_of(grading)
    inherited: dict[str, Any] = {name: source[name] for name in ("data", "panel", "data_facts") if name in source}
    own: Record = inherited.get("panel") or {}
    panel = {**own, "grading": to_mapping(grading)}
    spec: dict[str, Any] = {
        "name": GRADE_VERB,
        **spec_groups(settings, (*OTHER_SYSTEMS, "panel", "data")),
        **inherited,
        "panel": panel,
        "graded_run": folder.name,
        "grading_files": grading_files(grading),
        "prompts": prompt_hashes(grader),
    }

    async def work(item: Record) -> Record:
        return await graded(item, grader, synonyms)

    return RunPlan(
        settings=replace(settings, data=_data_of(source)),
        verb=GRADE_VERB,
        items=records,
        kind=RecordKind(),
        work=work,
        program=grader,
        state=lambda: state_of(grader),
        spec=spec,
        summarise=lambda found: summary_of(found, spec),
        pictures=write_pictures,
        metrics=diagnosis_metrics,
        name=f"grade/{settings.lm.name}",
        words=("graded", "diagnosis"),
        outcome_noun="outcomes",
        facts=source.get("data_facts") or {},
        tags={"system": "diagnosis", "graded_run": folder.name, **tags},
        trace=diagnosis_layout,
    )
