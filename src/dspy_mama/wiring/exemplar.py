"""From gold pairs to a head in a file: weights, what they learnt from, and how they and controls do out of fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from dspy_mama.core.cases import DOMAINS, Domain, QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import object_hash
from dspy_mama.core.ports import Embedder
from dspy_mama.datasets import load_pairs
from dspy_mama.datasets.predictions import replace_file
from dspy_mama.reporting.evaluation import score
from dspy_mama.scoring import Labels, labels_from_records
from dspy_mama.scoring.logistic_head import LogisticHead, pair_hash
from dspy_mama.settings import ExperimentSettings, Settings
from dspy_mama.systems.supervised import OutOfFold, baseline_records, cross_validate, make_learner, question_groups
from dspy_mama.systems.supervised.folds import Ints
from dspy_mama.systems.supervised.head import train_domains
from dspy_mama.wiring.baseline import baseline_embedder

CONTROLS: Final = ("embedding", "tfidf", "length", "majority")
"""What the figures show side by side: the head's own kind, and what simpler readers reach on the same folds."""
MEASURES: Final = ("macro_f1", "auc")

SAMPLE_LIMITS: Final = (
    "Trained on 40 questions with constructed answers, in Japanese and English, that were written for this project "
    "together with their labels; no physician, ethicist or lawyer has checked them. The figures are of this sample "
    "alone and say nothing of real chatbot answers (out of fold on K-QA's 50 answers the same method is at chance). "
    "Legal risk is not told from chance even here. What the head reads (the answer alone) was chosen after a look at "
    "these figures, so they flatter it a little. The controls show how far length and words alone go on the same "
    "folds: where they reach the head's figures, the head shows no understanding. With 7 to 15 risky questions a "
    "domain the intervals are wide. Classes were weighted to be equal, so a probability ranks answers and is no "
    "frequency. Use it to see the parts work without an LM; never to decide about a patient or a product."
)
"""What the shipped head is not good for."""


@dataclass(frozen=True)
class TrainingPairs:
    """Pairs to train a head on.

    Attributes:
        pairs: The pairs; with several languages, ids end in the language.
        groups: Group of each pair: a question and its translations stay together.
        facts: What is known of the data.
    """

    pairs: tuple[QAPair, ...]
    groups: Ints
    facts: Mapping[str, Any]


def training_pairs(settings: Settings, languages: Sequence[str] = ()) -> TrainingPairs:
    """Loads the pairs of the settings, in one language or several.

    Args:
        settings: `data` is read.
        languages: Languages to train on together; empty = `data.language`.

    Raises:
        DeclarationError: The data cannot be loaded.
    """
    pairs: list[QAPair] = []
    names: list[str] = []
    facts: Mapping[str, Any] = {}
    for language in languages or (settings.data.language,):
        loaded = load_pairs(replace(settings.data, language=language))
        facts = loaded.facts
        names += [pair.id for pair in loaded.pairs]
        pairs += [replace(p, id=f"{p.id}-{language}") for p in loaded.pairs] if languages else loaded.pairs
    return TrainingPairs(tuple(pairs), question_groups(pairs, names), facts)


def train_head(settings: Settings, data: TrainingPairs, embedder: Embedder, limits: str = "") -> LogisticHead:
    """Trains a head on all pairs, and measures its kind and the controls out of fold.

    Args:
        settings: `baseline` and `experiment` are read.
        data: What to learn from.
        embedder: What makes sentence vectors.
        limits: What its labels are not good for.

    Raises:
        DeclarationError: There is nothing to learn.
    """
    chosen = settings.baseline
    domains = train_domains(data.pairs, embedder, chosen, data.groups)
    text = chosen.text
    assert text != "separate"  # refused by train_domains
    found = _out_of_fold(settings, data, embedder)
    return LogisticHead(
        embedder.id,
        embedder.dimension,
        text,
        domains,
        training_facts(settings, data),
        cross_validation(settings, {name: _figures(own, settings.experiment) for name, own in found.items()}),
        limits or "It learnt from few pairs; its labels are an aid to review and no judgement.",
        said_out_of_fold(found["embedding"]),
    )


def training_facts(settings: Settings, data: TrainingPairs) -> dict[str, Any]:
    """Returns what a head learnt from, with hashes that tell whether the data are still the same."""
    content = [[p.id, p.question, p.answer, {d: p.gold.get(d) for d in DOMAINS}] for p in data.pairs]
    return {
        "data": settings.data.name,
        "files": {Path(str(file["name"])).name: file["sha256"] for file in data.facts.get("files", ())},
        "pairs_hash": object_hash(content, 16),
        "languages": sorted({pair.language or "" for pair in data.pairs}),
        "pairs": len(data.pairs),
        "questions": len(set(data.groups.tolist())),
        "risky": {d: sum(pair.gold.get(d) is True for pair in data.pairs) for d in DOMAINS},
        "labels": "not by experts" if settings.data.name == "sample" else "as given by its data",
        "label_definition": data.facts.get("label_definition", ""),
    }


def _out_of_fold(settings: Settings, data: TrainingPairs, embedder: Embedder) -> dict[str, OutOfFold]:
    """Judges the pairs out of fold by the head's kind and by the controls, on the same folds."""
    chosen = settings.baseline
    options: dict[str, Any] = {"folds": chosen.folds, "seed": chosen.seed, "groups": data.groups}
    return {
        name: cross_validate(data.pairs, make_learner(replace(chosen, name=name), embedder), **options)
        for name in CONTROLS
    }


def said_out_of_fold(found: OutOfFold) -> dict[str, dict[Domain, tuple[float, bool]]]:
    """Returns what was said of each pair out of fold, by its hash."""
    said: dict[str, dict[Domain, tuple[float, bool]]] = {}
    for row, pair in enumerate(found.pairs):
        own = said.setdefault(pair_hash(pair.question, pair.answer), {})
        for domain, folds in found.domains.items():
            if folds.problem is None:
                own[domain] = (round(float(folds.probability[row]), 4), bool(folds.risky[row]))
    return said


def cross_validation(settings: Settings, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Returns figures out of fold together with how they were made."""
    chosen = settings.baseline
    return {
        "folds": chosen.folds,
        "inner_folds": chosen.inner_folds,
        "seed": chosen.seed,
        "text": chosen.text,
        "cut": chosen.cut,
        "intervals": f"95%, percentile bootstrap over questions, {settings.experiment.resamples} resamples",
        "figures": dict(figures),
    }


def _figures(found: OutOfFold, study: ExperimentSettings) -> dict[str, Any]:
    labels: Labels = replace(labels_from_records(baseline_records(found)), clusters=np.asarray(found.groups))
    scored = score(labels, seed=study.seed, resamples=study.resamples)
    figures: dict[str, Any] = {
        domain: {name: _figure(own[name], own["ci95"].get(name)) for name in MEASURES}
        for domain, own in scored["domains"].items()
        if own["n"]
    }
    return figures | {"average_macro_f1": _figure(scored["average_macro_f1"], scored["average_macro_f1_ci95"])}


def _figure(value: float | None, bounds: Sequence[float] | None) -> dict[str, Any]:
    return {
        "value": None if value is None else round(value, 3),
        "ci95": None if bounds is None else [round(bound, 3) for bound in bounds],
    }


def write_head(settings: Settings, path: Path, languages: Sequence[str] = ()) -> LogisticHead:
    """Trains a head on the data of the settings and writes it to a file.

    Args:
        settings: `baseline`, `data`, `embedder` and `experiment` are read.
        path: The file, `.json`.
        languages: Languages to train on together; empty = `data.language`.

    Raises:
        DeclarationError: Data or embedder are at fault, there is nothing to learn, or the file cannot be written.
    """
    if settings.baseline.name != "embedding" or path.suffix != ".json":
        raise DeclarationError("--head FILE.json: a head is baseline=embedding in a JSON file")
    embedder = baseline_embedder(settings)
    assert embedder is not None  # baseline=embedding has one
    limits = SAMPLE_LIMITS if settings.data.name == "sample" else ""
    head = train_head(settings, training_pairs(settings, languages), embedder, limits)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, head.to_json().encode("utf-8"))
    except OSError as error:
        raise DeclarationError(f"{path}: cannot be written ({error.strerror or error})") from None
    return head
