"""Which diseases the knowledge task asks about: those that cases have, or those that a table names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dspy_mama.core.disease_names import normalise_disease
from dspy_mama.core.errors import DataError, Fault
from dspy_mama.core.patient_case import PatientCase
from dspy_mama.datasets.loading import columns_in
from dspy_mama.datasets.selection import select
from dspy_mama.datasets.single_table import mapped_columns, single_table
from dspy_mama.settings import DataSettings

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "disease": ("disease", "diagnosis", "final_diagnosis", "final_name", "gold", "name"),
    "group": ("group", "type", "category"),
}
"""Our field, and the column names under which it is found; `data.columns` names others."""

_CASES_ALONE: Final = ("id", "case", "follow_up", "further", "diagnosis")
"""Fields that `data.columns` may name for a file of cases."""


def disease_named(name: str, *, group: str | None = None, source: str = "") -> PatientCase:
    """Returns a disease in the form of a case: its name is its id, its text and its own truth."""
    return PatientCase(id=name, sections={"": name}, diagnosis=name, group=group, source=source)


def diseases_of(cases: Iterable[PatientCase]) -> list[PatientCase]:
    """Returns the diseases that cases have, each once under its first spelling; cases without one have none."""
    found: dict[str, PatientCase] = {}
    for case in cases:
        if case.diagnosis:
            form = normalise_disease(case.diagnosis) or case.diagnosis
            found.setdefault(form, disease_named(case.diagnosis, group=case.group, source=case.source))
    return list(found.values())


def load_disease_table(settings: DataSettings) -> tuple[list[PatientCase], dict[str, Any]]:
    """Loads diseases from a table with one in each row; rows without one are named in the facts.

    Columns: `disease` (or `diagnosis`, as in a file of cases), `group`.

    Args:
        settings: `path`, `columns`, `encoding`, and `ids` and `limit`, which select among the diseases.

    Returns:
        The diseases, each once under its first spelling, and facts for the manifest.

    Raises:
        DeclarationError: Nothing is at the path, or `data.columns` does not fit the file.
        DataError: The file cannot be read, or it names no disease.
    """
    table = single_table(settings)
    names = {**_NAMES, **{field: (field,) for field in _CASES_ALONE}}
    columns = mapped_columns(
        table, settings, names, what="diseases", plain=lambda name: "_".join(name.casefold().split())
    )
    column = settings.columns.get("disease") or settings.columns.get("diagnosis") or columns.get("disease")
    if column is None:
        reason = f"no column with the disease; {columns_in(table)}. Name it: data.columns.disease='{table.columns[0]}'"
        raise DataError(table.name, [Fault(None, None, reason)])
    rows, notices = [], []
    for number, row in table:
        name = " ".join(row[column].split())
        group = row[columns["group"]].strip() if "group" in columns else ""
        if name:
            rows.append(disease_named(name, group=group or None, source="table"))
        else:
            notices.append(f"row {number}: names no disease")
    known = diseases_of(rows)
    if not known:
        raise DataError(table.name, [Fault(None, column, "names no disease")])
    chosen = select(known, settings)
    facts = {"loader": settings.name, "files": [dict(table.facts)], "cases": len(known), "selected": len(chosen)}
    return chosen, {**facts, "notices": notices}
