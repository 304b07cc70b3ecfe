"""From run folders, MLflow run ids and prediction files to systems that can be compared, and to the report."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets import LabelFile
from dspy_mama.reporting.comparison import compare_systems
from dspy_mama.reporting.comparison_html import render_comparison
from dspy_mama.reporting.page import write_page
from dspy_mama.reporting.summary import label_banner
from dspy_mama.reporting.usage import usage_by_phase
from dspy_mama.scoring import Labels, join_predictions, labels_from_records
from dspy_mama.scoring.labels import LabelSource
from dspy_mama.settings import TrackingSettings
from dspy_mama.wiring.outside import (
    cluster_texts,
    is_record_file,
    read_answers,
    read_record_file,
    refuse_same_columns,
)
from dspy_mama.wiring.rebuild import require_audit

PHASES: Final = ("initial", "verification", "consensus", "final")
_PHASE = re.compile(rf"(.+)@({'|'.join(PHASES)})")
_NAMED = re.compile(r"([^=/\\]{1,60})=(.+)")


@dataclass(frozen=True)
class System:
    """One side of a comparison.

    Attributes:
        name: What it is called.
        labels: What it said, beside gold.
        records: Its records, where it has any.
        spec: Settings of the run, or empty.
        source: Where it was read from.
    """

    name: str
    labels: Labels
    records: tuple[Mapping[str, Any], ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class Reading:
    """How systems are read.

    Attributes:
        tracking: Store of MLflow run ids, and root of run folders named alone.
        gold: Gold labels for prediction files without their own, as `--gold` names them.
        phase: Verdicts compared, unless a system names its own (`RUN@initial`).
        cluster: Column of the gold file (`question` for runs) whose equal texts are resampled together, or None.
        gold_columns: Field -> column of gold files.
        pred_columns: Field -> column of prediction files.
        by_order: Match prediction files by order.
        threshold: Cut for probabilities without labels.
        overrides: Settings of a data set named as gold.
    """

    tracking: TrackingSettings = field(default_factory=TrackingSettings)
    gold: Sequence[str] = ()
    phase: LabelSource = "final"
    cluster: str | None = None
    gold_columns: Mapping[str, str] = field(default_factory=dict)
    pred_columns: Mapping[str, str] = field(default_factory=dict)
    by_order: bool = False
    threshold: float = 0.5
    overrides: Sequence[str] = ()


def read_systems(words: Sequence[str], reading: Reading) -> list[System]:
    """Reads the systems that the words name, each `[NAME=]SOURCE[@PHASE]`, and gives each a name of its own.

    Raises:
        DeclarationError: A source is nothing that can be compared.
    """
    gold = read_answers(reading.gold, "gold", columns=reading.gold_columns, overrides=reading.overrides)
    with tempfile.TemporaryDirectory(prefix="mama-runs-") as downloads:
        found = [_read(word, reading, gold, Path(downloads)) for word in words]
    named = [name for name, _ in found]
    short = _short_names([system for _, system in found])
    names = [given or own for given, own in zip(named, short, strict=True)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DeclarationError(f"two systems are called {twice[0]!r}; give each a name: NAME=RUN")
    return [
        System(name, own.labels, own.records, own.spec, own.source) for name, (_, own) in zip(names, found, strict=True)
    ]


def _read(word: str, reading: Reading, gold: Sequence[LabelFile], downloads: Path) -> tuple[str, System]:
    name = ""
    if not Path(word).exists() and (match := _NAMED.fullmatch(word)):
        name, word = match[1], match[2]
    phase = reading.phase
    if not Path(word).exists() and (match := _PHASE.fullmatch(word)):
        word, phase = match[1], cast("LabelSource", match[2])
    return name, _source(word, phase, reading, gold, downloads)


def _source(word: str, phase: LabelSource, reading: Reading, gold: Sequence[LabelFile], downloads: Path) -> System:
    from dspy_mama.tracking.mlflow_runs import fetch_run, is_run_id

    path = Path(word).expanduser()
    below = Path(reading.tracking.root) / "runs" / word
    if not path.exists() and (below / "records.jsonl").is_file():
        path = below
    if path.is_dir() or is_record_file(path):
        return _from_records(path, phase, reading)
    if path.is_file():
        return _from_predictions(path, reading, gold)
    if is_run_id(word):
        own = _from_records(fetch_run(word, reading.tracking, downloads), phase, reading)
        return System(own.name, own.labels, own.records, own.spec, f"MLflow run {word}")
    raise DeclarationError(f"{word}: neither a run folder, nor a file of predictions, nor an MLflow run id (32 digits)")


def _from_records(path: Path, phase: LabelSource, reading: Reading) -> System:
    folder = path if path.is_dir() else path.parent
    file = path / "records.jsonl" if path.is_dir() else path
    if not file.is_file():
        raise DeclarationError(f"{path} is not a run: it holds no records.jsonl")
    if reading.cluster not in (None, "question"):
        raise DeclarationError(f"--cluster {reading.cluster}: runs can be clustered by question alone")
    records = read_record_file(file)
    require_audit(records, str(path), "compare")
    labels = labels_from_records(records, phase, cluster_by_question=reading.cluster == "question")
    spec_file = folder / "spec.json"
    spec = json.loads(spec_file.read_text("utf-8")) if spec_file.is_file() else {}
    name = folder.name if path.is_dir() else path.stem
    return System(
        name if phase == reading.phase else f"{name} {phase}", labels, records, {**spec, "phase": phase}, str(path)
    )


def _from_predictions(path: Path, reading: Reading, gold: Sequence[LabelFile]) -> System:
    if not gold:
        gold = read_answers([str(path)], "gold", columns=reading.gold_columns)
    predictions = read_answers([str(path)], "predictions", columns=reading.pred_columns)
    refuse_same_columns(gold, predictions)
    joined = join_predictions(
        gold,
        predictions,
        by_order=reading.by_order,
        threshold=reading.threshold,
        clusters=cluster_texts(gold[0], reading.cluster),
    )
    return System(path.stem, joined.labels, (), {}, str(path))


_FACETS: Final = ("system", "ablation", "lm", "data")


def _short_names(systems: Sequence[System]) -> list[str]:
    """Names runs by the settings in which they differ (`rag`, `baseline`), files by their own name."""
    specs = [system.spec for system in systems]
    facets = [f for f in _FACETS if len({str((spec.get(f) or {}).get("name")) for spec in specs if f in spec}) > 1]
    phases = {spec.get("phase") for spec in specs if spec}
    kinds = {"baseline" in spec and "system" not in spec for spec in specs if spec}
    learned = {_how_compiled(spec) for spec in specs if "system" in spec}
    names = []
    for system in systems:
        if "baseline" in system.spec and "system" not in system.spec:
            names.append(f"baseline {system.spec['baseline'].get('name')}")
            continue
        parts = [str((system.spec.get(facet) or {}).get("name")) for facet in facets if facet in system.spec]
        if not parts and len(kinds) > 1 and "system" in system.spec:
            parts.append(str(system.spec["system"].get("name")))
        if how := _how_compiled(system.spec):
            parts.append(how)
        elif len(learned) > 1 and "system" in system.spec:
            parts.append("uncompiled")
        if system.spec and len(phases) > 1:
            parts.append(str(system.spec["phase"]))
        names.append(" ".join(parts) or system.name)
    return [
        own if names.count(own) == 1 else f"{own} {system.name}".strip() if own != system.name else own
        for own, system in zip(names, systems, strict=True)
    ]


def _how_compiled(spec: Mapping[str, Any]) -> str:
    if spec.get("name") == "compile":
        return f"compiled by {(spec.get('optimizer') or {}).get('name')}"
    return "compiled" if (spec.get("system") or {}).get("program") else ""


def costs_of(systems: Sequence[System]) -> tuple[dict[str, float | None], str]:
    """Returns what one pair costs by system, in the dearest unit that is known of all that have records.

    Returns:
        Cost per pair (None = unknown) and its unit: money, else tokens, else calls.
    """
    totals = {
        system.name: usage_by_phase(system.records)["total"] | {"n": len(system.records)}
        for system in systems
        if system.records
    }
    for unit, names in (
        ("money per pair", ("cost",)),
        ("tokens per pair", ("prompt_tokens", "completion_tokens")),
        ("LM calls per pair", ("calls",)),
    ):
        known = {
            name: sum(used[part] for part in names) / used["n"]
            for name, used in totals.items()
            if all(used[part] is not None and part not in used["unknown"] for part in names)
        }
        if known and len(known) == len(totals) and any(known.values()):
            return {system.name: known.get(system.name) for system in systems}, unit
    return {system.name: None for system in systems}, "cost per pair"


def compare(systems: Sequence[System], **options: Any) -> dict[str, Any]:
    """Compares systems; options are those of `compare_systems`.

    Returns:
        The comparison, with `sources`, `costs` and `cost_unit`.
    """
    found = compare_systems({system.name: system.labels for system in systems}, **options)
    if not any(score["average_domains"] for score in found["systems"].values()):
        raise DeclarationError("no system has a pair with both gold and a verdict; give gold labels with --gold")
    costs, unit = costs_of(systems)
    sources = {system.name: system.source for system in systems}
    return {**found, "sources": sources, "costs": costs, "cost_unit": unit}


def write_comparison(comparison: Mapping[str, Any], systems: Sequence[System], path: Path) -> Path:
    """Writes the comparison as one HTML file and returns its path.

    Raises:
        DeclarationError: The file cannot be written.
    """
    models = {
        role: [str((record.get("models") or {}).get(role)) for record in system.records[:1]]
        for system in systems
        for role in ((system.records[0].get("models") or {}) if system.records else {})
    }
    page = render_comparison(
        comparison,
        {system.name: system.labels for system in systems},
        {
            system.name: {(str(record["id"]), int(record.get("repeat") or 0)): record for record in system.records}
            for system in systems
        },
        context=[f"{system.name}: {Path(system.source).name or system.source}" for system in systems],
        costs=comparison["costs"],
        cost_unit=comparison["cost_unit"],
        banner=label_banner(models),
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_page(path, page)
    except OSError as error:
        raise DeclarationError(f"{path}: cannot be written ({error.strerror or error})") from None
