"""What a diagnosis run works on: cases by stage and method, and diseases by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dspy_mama.core.disease_knowledge import KNOWLEDGE
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.patient_case import PatientCase
from dspy_mama.datasets.cases import load_cases
from dspy_mama.datasets.diseases import diseases_of, load_disease_table
from dspy_mama.settings import DataSettings
from dspy_mama.settings.panel import PanelSettings
from dspy_mama.systems.mac import (
    DiagnosisItem,
    answers_without_texts,
    failed_knowledge,
    failed_record,
    identity_record,
    item_key,
    why_failed,
    without_texts,
)
from dspy_mama.systems.mac.grading_record import grades_without_texts
from dspy_mama.systems.mac.knowledge_record import is_knowledge

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DiagnosisKind:
    """Cases by stage and method, as a diagnosis run takes them."""

    @property
    def noun(self) -> str:
        """`diagnosis`."""
        return "diagnosis"

    def key(self, item: DiagnosisItem, repeat: int) -> str:
        """Returns `item_key`."""
        return item_key(item, repeat)

    def identity(self, item: DiagnosisItem, repeat: int, store_text: bool) -> Record:
        """Returns ids, gold and, where it is kept, the case's text."""
        record = identity_record(item, repeat)
        return record if store_text else {name: value for name, value in record.items() if name != "case"}

    def failed(self, item: DiagnosisItem, error: BaseException, repeat: int, store_text: bool) -> Record:
        """Returns a record whose outcomes are `infra`."""
        if item.stage == KNOWLEDGE:
            return failed_knowledge(item, why_failed(error), repeat)
        return failed_record(item, error, repeat)

    def without_texts(self, record: Mapping[str, Any]) -> Record:
        """Returns the record without the case, arguments, entries and reasons."""
        bare = answers_without_texts(record) if is_knowledge(record) else without_texts(record)
        return grades_without_texts({name: value for name, value in bare.items() if name != "case"})


def load_items(data: DataSettings, panel: PanelSettings) -> tuple[list[PatientCase], dict[str, Any]]:
    """Loads what the settings name: cases, or, where nothing but knowledge is asked of a table, diseases.

    Raises:
        DeclarationError: The settings do not fit the data, or select nothing.
        DataError: The file cannot be read, or rows have faults.
    """
    if panel.stages == (KNOWLEDGE,) and data.name == "table":
        return load_disease_table(data)
    loaded = load_cases(data)
    return loaded.cases, loaded.facts


def items_of(panel: PanelSettings, cases: Sequence[PatientCase]) -> list[DiagnosisItem]:
    """Returns every case by every stage at which something is known of it, and every disease, by every method.

    Raises:
        DeclarationError: No stage of any case can be asked, or knowledge is asked of cases without a disease.
    """
    items = [
        DiagnosisItem(case, stage, method)
        for case in cases
        for stage in panel.stages
        if stage == "primary" or (stage == "follow_up" and case.further)
        for method in panel.methods
    ]
    if KNOWLEDGE in panel.stages:
        diseases = diseases_of(cases)
        if not diseases:
            raise DeclarationError(
                "panel.stages: knowledge asks about the diseases that cases have, and no case has one; name their "
                "column with data.columns.diagnosis, or leave knowledge out"
            )
        known = [method for method in panel.methods if method != "self_consistency"]
        items += [DiagnosisItem(disease, KNOWLEDGE, method) for disease in diseases for method in known]
    if not items:
        raise DeclarationError("panel.stages=[follow_up]: no case has further tests; take the stage primary")
    return items
