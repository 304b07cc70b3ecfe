"""Any csv, tsv, jsonl, json, parquet or xlsx file with a patient's case in each row."""

from __future__ import annotations

from typing import Any, Final

from dspy_mama.core.errors import DataError, Fault
from dspy_mama.core.ids import content_hash
from dspy_mama.core.patient_case import FURTHER_SECTION, PatientCase
from dspy_mama.datasets.loading import columns_in
from dspy_mama.datasets.single_table import mapped_columns, repeated_ids, single_table
from dspy_mama.datasets.tables import Table
from dspy_mama.settings import DataSettings

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "id": ("id", "case_id", "number"),
    "case": ("case", "text", "presentation", "primary", "initial_presentation", "vignette"),
    "follow_up": ("follow_up", "follow_up_presentation", "followup"),
    "further": ("further", "further_diagnostic_tests", "further_tests"),
    "diagnosis": ("diagnosis", "final_diagnosis", "final_name", "gold"),
    "group": ("group", "type", "category"),
}
"""Our field, and the column names under which it is found; `data.columns` names others."""

_SECTIONS: Final = (
    "Basic Information",
    "Clinical Presentation",
    "Physical Examination",
    "Past Medical History",
    "Initial Test Results",
)


def plain_name(name: str) -> str:
    """Returns a column's name as it is compared: case, hyphens, underscores and blanks do not count."""
    return "_".join(name.casefold().replace("-", " ").replace("_", " ").split())


def load_case_table(settings: DataSettings) -> tuple[list[PatientCase], dict[str, Any]]:
    """Loads cases from a table.

    Columns: `id`; `case` (the presentation at the first visit) or MAC's five sections; `further` (what further tests
    added) or `follow_up` (the whole presentation at the follow-up); `diagnosis`, `group`. Only the case is needed.

    Args:
        settings: `path` (a file, or a folder with one data file), `columns`, `encoding`.

    Raises:
        DeclarationError: Nothing is at the path, or `data.columns` does not fit the file.
        DataError: The file cannot be read, or rows have faults; all of them are named.
    """
    table = single_table(settings)
    columns = mapped_columns(table, settings, _NAMES, what="cases", plain=plain_name)
    sections = {} if "case" in columns else _section_columns(table)
    if "case" not in columns and not sections:
        reason = (
            f"no column with the case; {columns_in(table)}. Name it, such as data.columns.case='{table.columns[0]}'"
        )
        raise DataError(table.name, [Fault(None, None, reason)])
    cases, faults = [], []
    for number, row in table:
        case = _case(number, row, columns, sections)
        if not case.text("primary"):
            faults.append(Fault(number, columns.get("case"), "holds no text of the case"))
        cases.append(case)
    faults += repeated_ids((case.id for case in cases), columns.get("id"))
    if faults:
        raise DataError(table.name, faults)
    return cases, dict(table.facts)


def _section_columns(table: Table) -> dict[str, str]:
    known = {plain_name(name): name for name in _SECTIONS}
    return {column: known[plain_name(column)] for column in table.columns if plain_name(column) in known}


def _case(number: int, row: dict[str, str], columns: dict[str, str], sections: dict[str, str]) -> PatientCase:
    def cell(field: str) -> str:
        return row[columns[field]].strip() if field in columns else ""

    first = {name: row[column] for column, name in sections.items()} if sections else {"": cell("case")}
    if cell("follow_up"):
        # The whole presentation of the follow-up stands in place of what was known before.
        further = {**dict.fromkeys(first, ""), "": cell("follow_up")}
    else:
        further = {FURTHER_SECTION: cell("further")} if cell("further") else {}
    notices = [f"{name or 'the case'} is empty" for name, text in first.items() if not text.strip()]
    if not cell("follow_up") and not cell("further"):
        notices.append("the follow-up adds no further tests")
    return PatientCase(
        id=cell("id") or f"row-{number}-{content_hash(chr(10).join(first.values()), 8)}",
        sections=first,
        further=further,
        diagnosis=" ".join(cell("diagnosis").split()) or None,
        group=cell("group") or None,
        source="table",
        notices=tuple(notices),
    )
