"""From settings to patients' cases, and the facts that a manifest keeps of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.patient_case import STAGES, PatientCase
from dspy_mama.datasets.case_tables import load_case_table
from dspy_mama.datasets.mac import load_mac
from dspy_mama.datasets.selection import select
from dspy_mama.settings import DataSettings

CaseLoader = Callable[[DataSettings], tuple[list[PatientCase], dict[str, Any]]]

CASE_LOADERS: Final[Mapping[str, CaseLoader]] = {"mac": load_mac, "table": load_case_table}
"""Every data set of cases that `data.name` may name."""


@dataclass(frozen=True, slots=True)
class LoadedCases:
    """Cases, and what a reader of their results should know of them.

    Attributes:
        cases: The selected cases, in file order.
        facts: Plain data for the manifest: loader, files (name, sha256, rows), cases (in the file), selected, groups
            (count by name), leaks (ids by stage: the text holds the diagnosis), repeated_diagnoses (ids by name)
            and notices (id and what was met); all but `cases` are of the selected ones.
    """

    cases: list[PatientCase]
    facts: dict[str, Any]


def load_cases(settings: DataSettings) -> LoadedCases:
    """Loads, checks and selects cases; `ids` selects first, then `split`, then `limit`.

    Args:
        settings: Which data set, and which of its cases.

    Raises:
        DeclarationError: The settings do not fit the data, or select nothing.
        DataError: The file cannot be read, or cases have faults; all of them are named.
    """
    if settings.name not in CASE_LOADERS:
        raise DeclarationError(
            f"data={settings.name}: holds no patients' cases; those that do are {', '.join(CASE_LOADERS)}"
        )
    loaded, file_facts = CASE_LOADERS[settings.name](settings)
    cases = select(loaded, settings)
    if not cases:
        raise DeclarationError(f"data: the selection leaves none of {len(loaded)} case(s)")
    return LoadedCases(cases, _facts(settings, loaded, cases, file_facts))


def _facts(
    settings: DataSettings, loaded: Sequence[PatientCase], cases: Sequence[PatientCase], file_facts: dict[str, Any]
) -> dict[str, Any]:
    by_name: dict[str, list[str]] = {}
    for case in cases:
        if case.diagnosis:
            by_name.setdefault(case.diagnosis.casefold(), []).append(case.id)
    return {
        "loader": settings.name,
        "files": [file_facts],
        "cases": len(loaded),
        "selected": len(cases),
        "groups": dict(sorted(Counter(case.group for case in cases if case.group).items())),
        "leaks": {stage: [case.id for case in cases if case.leaks(stage)] for stage in STAGES},
        "repeated_diagnoses": {name: ids for name, ids in by_name.items() if len(ids) > 1},
        "notices": [f"{case.id}: {notice}" for case in cases for notice in case.notices],
    }
