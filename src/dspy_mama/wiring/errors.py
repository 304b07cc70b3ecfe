"""Runs on disk to error analysis, sheets for clinicians, and an LM's suggestions on them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.roles import build_lms
from dspy_mama.lm.usage import CallUsage, total
from dspy_mama.reporting.errors import ErrorCase
from dspy_mama.settings import Jurisdiction, Settings
from dspy_mama.systems.audit import SeverityAssessor, SeverityOpinion
from dspy_mama.tracking import RunStore


@dataclass(frozen=True, slots=True)
class AuditRun:
    """One run on disk.

    Attributes:
        records: Its records.
        jurisdiction: Whose law its prompts meant.
    """

    records: tuple[dict[str, Any], ...]
    jurisdiction: Jurisdiction


def load_runs(folders: Sequence[str], root: str = "mlruns") -> dict[str, AuditRun]:
    """Returns runs by their names.

    Args:
        folders: Run folders, or names of runs below the tracking root.
        root: Tracking root.

    Raises:
        DeclarationError: A folder is no run or holds no record, or a run is named twice.
    """
    runs: dict[str, AuditRun] = {}
    for name in folders:
        inside = Path(root, "runs", name)
        folder = Path(name) if Path(name).exists() or not inside.is_dir() else inside
        store = RunStore.open(folder)
        records = store.records()
        if not records:
            raise DeclarationError(f"{folder}: holds no record; run the audit first")
        label = folder.resolve().name
        if label in runs:
            raise DeclarationError(f"{label}: the same run is named twice")
        runs[label] = AuditRun(records, (store.load("spec").get("system") or {}).get("jurisdiction", "JP"))
    return runs


async def suggest_severity(
    cases: Sequence[ErrorCase], runs: Mapping[str, AuditRun], settings: Settings
) -> dict[str, SeverityOpinion]:
    """Asks the judge's LM how severe each error is.

    Args:
        cases: Errors, with their texts.
        runs: The runs that they are from.
        settings: Their `lm` (role `judge`) and `runtime.concurrency`.

    Returns:
        An opinion by item; one that could not be read is `Unscored` and kept.

    Raises:
        DeclarationError: The LM's configuration is at fault.
    """
    import dspy

    lms = build_lms(settings.lm)
    assessor = SeverityAssessor(lms.get("judge", lms["default"]))
    places = asyncio.Semaphore(settings.runtime.concurrency)

    async def one(case: ErrorCase) -> SeverityOpinion:
        record = case.record
        async with places:
            return await assessor.aforward(
                record["question"],
                record["answer"],
                case.domain,
                case.kind,
                (record.get("notes") or {}).get(case.domain) or "",
                runs[case.runs[0]].jurisdiction,
            )

    # DSPy's history keeps whole prompts of patients' texts in memory; the sheet holds what is needed.
    with dspy.context(disable_history=True):
        opinions = await asyncio.gather(*map(one, cases))
    return {case.item: opinion for case, opinion in zip(cases, opinions, strict=True)}


def usage_of(opinions: Sequence[SeverityOpinion]) -> CallUsage:
    """Returns what the suggestions cost."""
    return total(opinion.usage for opinion in opinions)
