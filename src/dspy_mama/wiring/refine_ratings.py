"""People's ratings of a finished run: the sheet that asks for them, and the agreement that they give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.safety_ratings import SCALES, read_safety_ratings
from dspy_mama.reporting.mended import write_rating_sheet
from dspy_mama.reporting.printing import as_markdown
from dspy_mama.reporting.refinement_calibration import calibrate, calibration_tables
from dspy_mama.tracking import RunStore

AGREEMENT: Final = "agreement.json"


def _run(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    store = RunStore.open(folder)
    spec, records = store.load("spec"), list(store.records())
    if any(record.get("system") != "refine" for record in records) or not records:
        raise DeclarationError(f"{folder}: is no run of mama refine with records")
    return records, spec


def sheet_for(folder: Path, target: Path) -> int:
    """Writes the sheet on which people rate a run's texts, and returns how many there are.

    Raises:
        DeclarationError: The folder is no such run, or the sheet cannot be written.
    """
    records, _ = _run(folder)
    return write_rating_sheet(records, target)


def calibrate_run(folder: Path, ratings: Path) -> tuple[dict[str, Any], Path]:
    """Holds a run's evaluators against people's ratings; the result is kept beside the run's files.

    Returns:
        What `calibrate` found, and the Markdown file that shows it.

    Raises:
        DeclarationError: The folder is no such run, or a rating fits no record.
        DataError: The ratings have faults.
    """
    records, spec = _run(folder)
    if not ratings.is_file():
        raise DeclarationError(f"--ratings {ratings}: there is no such file")
    own, study = spec.get("refiner") or {}, spec.get("experiment") or {}
    thresholds = {scale: float(own.get(f"{scale}_threshold", 2)) for scale in SCALES}
    options = {"seed": study.get("seed", 0), "resamples": study.get("resamples", 1000)}
    found = calibrate(records, read_safety_ratings(ratings), thresholds, **options)
    (folder / AGREEMENT).write_text(json.dumps(found, indent=1), encoding="utf-8")
    shown = folder / Path(AGREEMENT).with_suffix(".md")
    shown.write_text(as_markdown(calibration_tables(found)), encoding="utf-8")
    return found, shown
