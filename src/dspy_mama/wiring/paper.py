"""The paper's tables from runs on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.reporting import published
from dspy_mama.reporting.paper_tables import ablations_beside_paper, bootstrap_beside_paper, systems_beside_paper
from dspy_mama.reporting.tables import Table, bootstrap_note
from dspy_mama.settings import Settings, to_mapping
from dspy_mama.tracking import is_complete
from dspy_mama.wiring.comparison import Reading, compare, read_systems

Facts = dict[tuple[str, str], Path]
"""Run folders by system and ablation."""

STUDIES: Final = ("table3", "ablation")


def runs_for(settings: Settings) -> Facts:
    """Returns the newest complete run of every system and ablation on the settings' data with the settings' LM."""
    data = _data(json.loads(json.dumps(to_mapping(settings.data))))
    folders = sorted(folder for folder in Path(settings.tracking.root, "runs").glob("*") if is_complete(folder))
    specs = {folder: _spec(folder) for folder in folders}
    kept = [f for f, s in specs.items() if _data(s.get("data")) == data and _name(s, "lm") == settings.lm.name]
    return by_setting(kept)


def by_setting(folders: Iterable[Path]) -> Facts:
    """Returns run folders by system and ablation, the last one of each."""
    return {(_name(spec, "system"), _name(spec, "ablation")): f for f in folders if (spec := _spec(f))}


def _data(own: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the data settings with the path made absolute: a file may be named in more than one way."""
    own = own or {}
    return {**own, "path": str(Path(own["path"]).resolve())} if own.get("path") else dict(own)


def _spec(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "spec.json").read_text("utf-8"))
    return found


def _name(spec: Mapping[str, Any], group: str) -> str:
    return str((spec.get(group) or {}).get("name"))


def paper_tables(runs: Facts, studies: Iterable[str] = STUDIES) -> list[Table]:
    """Returns our numbers beside the paper's.

    Args:
        runs: Run folders by system and ablation.
        studies: `table3` (systems and paired differences), `ablation`.
    """
    summaries = {key: json.loads((folder / "summary.json").read_text("utf-8")) for key, folder in runs.items()}
    systems = {system: found for (system, ablation), found in summaries.items() if ablation == "full"}
    systems |= {f"{system}/{ablation}": s for (system, ablation), s in summaries.items() if ablation != "full"}
    notes = _notes(runs, summaries)
    tables = []
    if "table3" in studies:
        tables += [
            systems_beside_paper(systems, notes),
            bootstrap_beside_paper(systems, _compared(runs, systems), notes[:1]),
        ]
    if "ablation" in studies:
        ablations = {ablation: found for (system, ablation), found in summaries.items() if system == "rag"}
        tables.append(ablations_beside_paper(ablations, notes))
    return tables


def _compared(runs: Facts, summaries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    names = [name for name in published.SYSTEMS if (name, "full") in runs]
    if len(names) < 2:
        return None
    own = summaries[names[0]]
    try:
        systems = read_systems([f"{name}={runs[name, 'full']}" for name in names], Reading())
        return compare(systems, seed=own["seed"], resamples=own["resamples"], method=own.get("method", "percentile"))
    except DeclarationError:  # runs without a pair or a gold label in common are shown, but not subtracted
        return None


def _notes(runs: Facts, summaries: Mapping[tuple[str, str], Mapping[str, Any]]) -> list[str]:
    if not runs:
        return ["Nothing of this study was run on these data with this LM."]
    specs = [_spec(folder) for folder in runs.values()]
    data = ", ".join(sorted({_name(spec, "data") for spec in specs}))
    lms = ", ".join(sorted({str(m) for s in summaries.values() for models in s["models"].values() for m in models}))
    sizes = ", ".join(sorted({str(summary["n"]) for summary in summaries.values()}))
    first = next(iter(summaries.values()))
    notes = [
        f"Ours: data {data}, n = {sizes}, LM {lms or 'unknown'}. {bootstrap_note(first)} Printed: MedNLP-CHAT test "
        f"set, n = {published.N}, GPT-4o."
    ]
    if data != "mednlp_chat":
        notes.append("These are not the paper's data: the columns stand beside each other, they do not compare.")
    banner = next((s["label_banner"] for s in summaries.values() if s.get("label_banner")), None)
    return [*notes, f"{banner}."] if banner else notes
