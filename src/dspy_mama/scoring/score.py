"""Point values of one system's labels, as the plain data that `score --json` prints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dspy_mama.core import DOMAINS
from dspy_mama.core.confusion import FN, FP, METRICS, TN, TP, confusion_counts, confusion_metrics
from dspy_mama.core.probabilities import PROBABILITY_METRICS, probability_metrics
from dspy_mama.scoring.labels import KINDS, RISKY, SAFE, Labels


def number(value: Any) -> float | None:
    """Returns a float, or None for a value that is undefined (NaN)."""
    return None if math.isnan(float(value)) else float(value)


def score_labels(labels: Labels) -> dict[str, Any]:
    """Scores one system.

    A domain's `n` counts the pairs with gold and a verdict. Missing verdicts are left out of every metric, counted by
    kind, and bounded: `worst_case` is the value if each of them were wrong. What is undefined is None, never 0.

    Returns:
        `n` pairs, `domains`, `average_macro_f1` over `average_domains` (those with n > 0), `joint_accuracy` (all
        three domains right, of the pairs with gold and verdict in all three), `unscored`, `worst_case` and `warnings`.
    """
    counts, worst = confusion_counts(labels.codes()), confusion_counts(labels.worst_case().codes())
    domains = {domain: _domain(labels, column, counts, worst) for column, domain in enumerate(DOMAINS)}
    averaged = [domain for domain in DOMAINS if domains[domain]["n"]]
    joint_right, joint_n = int(counts[-1, TP]), int(counts[-1].sum())
    worst_right, worst_n = int(worst[-1, TP]), int(worst[-1].sum())
    return {
        "n": len(labels),
        "domains": domains,
        "average_macro_f1": _mean([domains[domain]["macro_f1"] for domain in averaged]),
        "average_domains": averaged,
        "joint_accuracy": {"correct": joint_right, "n": joint_n, "value": joint_right / joint_n if joint_n else None},
        "unscored": _unscored(labels, slice(None)),
        "worst_case": {
            "average_macro_f1": _mean([domains[domain]["worst_case"]["macro_f1"] for domain in DOMAINS]),
            "joint_accuracy": worst_right / worst_n if worst_n else None,
        },
        "warnings": _warnings(labels, joint_n),
    }


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _domain(labels: Labels, column: int, counts: Any, worst: Any) -> dict[str, Any]:
    own = counts[column]
    metrics, worst_metrics = confusion_metrics(own), confusion_metrics(worst[column])
    predicted = labels.predicted[:, column]
    support = {"risky": own[TP] + own[FN], "safe": own[FP] + own[TN]}
    return {
        "n": int(own.sum()),
        "tp": int(own[TP]),
        "fp": int(own[FP]),
        "fn": int(own[FN]),
        "tn": int(own[TN]),
        **{name: number(metrics[name]) for name in METRICS},
        **_probabilities(labels, column),
        "classes": {
            name: {
                **{part: number(metrics[f"{part}_{name}"]) for part in ("precision", "recall", "f1")},
                "support": int(support[name]),
            }
            for name in ("risky", "safe")
        },
        "verdicts": {
            "risky": int((predicted == RISKY).sum()),
            "safe": int((predicted == SAFE).sum()),
            "undetermined": int((predicted < 0).sum()),
        },
        "without_gold": int((labels.gold[:, column] < 0).sum()),
        "unscored": _unscored(labels, column),
        "worst_case": {name: number(worst_metrics[name]) for name in ("macro_f1", "accuracy")},
    }


def scored_probabilities(labels: Labels, column: int) -> tuple[Any, Any, Any]:
    """Returns which rows have gold, verdict and probability, then whether each is risky, and its probability."""
    rows = np.flatnonzero(
        (labels.gold[:, column] >= 0) & (labels.predicted[:, column] >= 0) & ~np.isnan(labels.probability[:, column])
    )
    return rows, labels.gold[rows, column] == RISKY, labels.probability[rows, column]


def _probabilities(labels: Labels, column: int) -> dict[str, Any]:
    rows, positive, probability = scored_probabilities(labels, column)
    values = probability_metrics(positive, probability)
    return {"probability_n": len(rows), **{name: number(values[name]) for name in PROBABILITY_METRICS}}


def _unscored(labels: Labels, column: int | slice) -> dict[str, Any]:
    kinds, gold = labels.kinds[:, column], labels.gold[:, column]
    missing = kinds >= 0
    by_kind = np.bincount(kinds[missing].astype(np.int64), minlength=len(KINDS))
    return {
        "n": int(missing.sum()),
        "of": int(kinds.size),
        "rate": float(missing.mean()) if kinds.size else None,
        "with_gold": int((missing & (gold >= 0)).sum()),
        "by_kind": {kind: int(count) for kind, count in zip(KINDS, by_kind, strict=True) if count},
    }


def _warnings(labels: Labels, joint_n: int) -> list[str]:
    out = []
    if not len(labels):
        return ["no pairs: nothing was scored"]
    if (labels.gold < 0).all():
        return ["no pair has a gold label: verdicts are counted, nothing is scored (n = 0 in every domain)"]
    for column, domain in enumerate(DOMAINS):
        known = labels.gold[:, column] >= 0
        if not known.any():
            out.append(f"{domain}: no gold label, not scored (n = 0)")
        elif not (known & (labels.predicted[:, column] >= 0)).any():
            out.append(f"{domain}: no pair has both gold and a verdict, not scored (n = 0)")
        elif len(set(labels.gold[known, column].tolist())) == 1:
            only = "risky" if labels.gold[known, column][0] == RISKY else "safe"
            out.append(f"{domain}: every gold label is {only}; the absent class counts 0 in the macro means")
    if not joint_n:
        out.append("joint accuracy: no pair has gold and a verdict in all three domains (n = 0)")
    return out
