"""Runs on disk to error analysis, sheets for clinicians, and an LM's suggestions on them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.roles import build_lms
from dspy_mama.lm.usage import CallUsage, total
from dspy_mama.reporting.errors import ErrorCase
from dspy_mama.settings import Jurisdiction, Settings, TrackingSettings
from dspy_mama.systems.audit import SeverityAssessor, SeverityOpinion
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.rebuild import require_audit


@dataclass(frozen=True, slots=True)
class AuditRun:
    """One run on disk.

    Attributes:
        records: Its records.
        jurisdiction: Whose law its prompts meant.
    """

    records: tuple[dict[str, Any], ...]
    jurisdiction: Jurisdiction


def load_runs(names: Sequence[str], tracking: TrackingSettings | None = None) -> dict[str, AuditRun]:
    """Returns runs by their names.

    Args:
        names: Run folders, names of runs below the tracking root, or MLflow run ids.
        tracking: Where run folders and MLflow's store are; None = as by default.

    Raises:
        DeclarationError: A name is no run, a run holds no record, or one is named twice.
    """
    settings = tracking or TrackingSettings()
    runs: dict[str, AuditRun] = {}
    with tempfile.TemporaryDirectory(prefix="mama-runs-") as downloads:
        for name in names:
            folder = _folder_of(name, settings, Path(downloads))
            store = RunStore.open(folder)
            records = store.records()
            if not records:
                raise DeclarationError(f"{name}: holds no record; run the audit first")
            require_audit(records, name, "errors")
            label = folder.resolve().name
            if label in runs:
                raise DeclarationError(f"{label}: the same run is named twice")
            law = (store.load("spec").get("system") or {}).get("jurisdiction", "JP")
            runs[label] = AuditRun(records, law)
    return runs


def _folder_of(name: str, settings: TrackingSettings, downloads: Path) -> Path:
    from dspy_mama.tracking.mlflow_runs import fetch_run, is_run_id

    below = Path(settings.root, "runs", name)
    if Path(name).exists():
        return Path(name)
    if below.is_dir():
        return below
    return fetch_run(name, settings, downloads) if is_run_id(name) else Path(name)


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
