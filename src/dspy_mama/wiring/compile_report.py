"""The pages of a compile run: the kept program's report, and the comparison with the uncompiled one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.optimize.result import Measured, measure, measured_row
from dspy_mama.optimize.selection import evaluation_of
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.study import rebuilt_summary, write_pictures

UNCOMPILED: Final = "uncompiled.jsonl"
"""The uncompiled program's audits of the pairs that the run's records are about."""

Record = Mapping[str, Any]


def write_comparison(
    folder: Path, measured: Measured, spec: Mapping[str, Any], before: Sequence[Record], after: Sequence[Record]
) -> Path:
    """Writes the page that compares both programs, with paired intervals.

    Args:
        folder: The run's folder.
        measured: Both programs on the same pairs.
        spec: The run's settings as plain data.
        before: The uncompiled program's records as they are kept: without texts where none may be stored.
        after: The compiled one's.
    """
    from dspy_mama.reporting import label_banner
    from dspy_mama.reporting.comparison import compare_systems
    from dspy_mama.reporting.comparison_html import render_comparison
    from dspy_mama.reporting.page import write_page

    labels = {"uncompiled": measured.before.labels, "compiled": measured.after.labels}
    sides = {"uncompiled": before, "compiled": after}
    study = spec["experiment"]
    found = compare_systems(labels, seed=study["seed"], resamples=study["resamples"], method=study["interval"])
    records = {name: {(str(row["id"]), 0): row for row in rows} for name, rows in sides.items()}
    models = {"judge": [str(model) for model in {row["models"].get("judge") for row in after}]}
    context = [f"Optimizer {spec['optimizer']['name']}, {folder.name}"]
    page = render_comparison(
        found, labels, records, title="Compiled against uncompiled", context=context, banner=label_banner(models)
    )
    return write_page(folder / "comparison.html", page)


def rebuild_compile(folder: Path) -> tuple[dict[str, Any], Path]:
    """Makes summary, figures, report and comparison of a compile run anew.

    What was measured comes from the records of both programs; what the search tried, which leaves no records, from
    `compile.json`.

    Args:
        folder: The run's folder.

    Returns:
        The summary, with its part on the compilation, and the path of the report.

    Raises:
        DeclarationError: The folder holds no complete compile run.
    """
    store = RunStore.open(folder)
    spec, records = store.load("spec"), store.records()
    document, before = _document(folder), _uncompiled(folder)
    after = sorted(records, key=lambda row: row.get("position", 0))
    if [row["key"] for row in before] != [row["key"] for row in after]:
        raise DeclarationError(f"{folder}: {UNCOMPILED} and records.jsonl are not about the same pairs")
    # Without texts nobody knows which pairs share a question: then what was measured stands as it was written.
    if all(row.get("question") for row in after):
        own = spec["optimizer"]
        sides = [evaluation_of([dict(row) for row in rows]) for rows in (before, after)]
        measured = measure(sides[0], sides[1], own["target"], seed=own["seed"])
        write_comparison(folder, measured, spec, before, after)
        document["validation" if document["test"] is None else "test"] = measured_row(measured, own["target"])
    summary = {**rebuilt_summary(spec, records), "compile": document}
    return summary, write_pictures(folder, records, summary, spec)


def _document(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / "compile.json").read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise DeclarationError(
            f"{folder}: compile.json cannot be read ({error}): the run is not complete; the command that began it "
            "goes on with it"
        ) from error


def _uncompiled(folder: Path) -> list[dict[str, Any]]:
    try:
        # Not splitlines(): what an LM wrote may hold U+2028 and its like, which are no line ends here.
        lines = (folder / UNCOMPILED).read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise DeclarationError(f"{folder / UNCOMPILED}: cannot be read ({error})") from error
