"""The report of any run, made anew from its records alone, whichever system made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.tracking import RunStore

AUDIT: Final = "audit"

_VERBS: Final = {"refine": "mama refine", "diagnosis": "mama diagnose"}


def system_of(records: Iterable[Mapping[str, Any]]) -> str:
    """Returns which system made the records: `audit`, `refine` or `diagnosis`."""
    return next((str(record.get("system") or AUDIT) for record in records), AUDIT)


def require_audit(records: Sequence[Mapping[str, Any]], source: str, verb: str) -> None:
    """Refuses the records of another system where verdicts of risk are needed.

    Raises:
        DeclarationError: They hold no verdicts.
    """
    system = system_of(records)
    if system != AUDIT:
        made = _VERBS.get(system, system)
        raise DeclarationError(
            f"{source}: a run of {made}, which holds no verdicts of risk, so that `mama {verb}` has nothing to read; "
            "`mama report` shows it"
        )


def rebuild_any(folder: Path) -> tuple[str, dict[str, Any], Path]:
    """Makes summary, figures and report of a run anew.

    Args:
        folder: The run's folder.

    Returns:
        The system, the summary, and the path of the report.

    Raises:
        DeclarationError: The folder is no run, or it holds no record.
    """
    store = RunStore.open(folder)
    system = system_of(store.records())
    if system == "refine":
        from dspy_mama.wiring.refine import rebuild as rebuild_refine

        return system, *rebuild_refine(folder)
    if system == "diagnosis":
        from dspy_mama.wiring.diagnose import rebuild as rebuild_diagnosis

        return system, *rebuild_diagnosis(folder)
    if store.load("spec").get("name") == "compile":
        from dspy_mama.wiring.compile_report import rebuild_compile

        return system, *rebuild_compile(folder)
    from dspy_mama.wiring.study import rebuild_report

    return system, *rebuild_report(folder)
