"""Cuts of the final labels' probabilities, fitted on saved predictions: no LM is asked.

Works on token probabilities and on stated ones alike: the final label is risky where its probability reaches the cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dspy_mama.core import DOMAINS, Domain
from dspy_mama.core.confusion import TP, confusion_counts, confusion_metrics
from dspy_mama.scoring import Labels

_LEAST: Final = 1e-12
"""Rises below this are rounding."""
_ROUNDS: Final = 5
"""Passes over the domains for a target that joins them; each pass can only raise it."""


def cut_labels(labels: Labels, thresholds: Mapping[Domain, float]) -> Labels:
    """Returns labels cut at thresholds; what has no probability stays as it was written."""
    predicted = labels.predicted.copy()
    for column, domain in enumerate(DOMAINS):
        if domain not in thresholds:
            continue
        known = (predicted[:, column] >= 0) & ~np.isnan(labels.probability[:, column])
        predicted[known, column] = labels.probability[known, column] >= thresholds[domain]
    return replace(labels, predicted=predicted)


def target_value(labels: Labels, target: str) -> float:
    """Returns a corpus-level target; NaN where nothing is scored.

    A missing verdict counts as wrong: a program must not gain by not answering.

    Args:
        labels: Gold and verdicts.
        target: `average_macro_f1` or `joint_accuracy`.
    """
    codes = labels.worst_case().codes()
    counts = confusion_counts(codes)
    if target == "joint_accuracy":
        total = counts[-1].sum()
        return float(counts[-1][TP] / total) if total else float("nan")
    scored = [counts[column] for column in range(len(DOMAINS)) if counts[column].sum()]
    return float(np.mean([confusion_metrics(own)["macro_f1"] for own in scored])) if scored else float("nan")


def candidate_cuts(probabilities: Any) -> list[tuple[float, float]]:
    """Returns (cut, width of its gap) for every way to part the probabilities; each cut lies mid-gap."""
    values = np.unique(probabilities[~np.isnan(probabilities)])
    if not len(values):
        return []
    edges = np.concatenate([[0.0], values, [1.0]])
    gaps = [(float((low + high) / 2), float(high - low)) for low, high in pairwise(edges)]
    return [(cut, width) for cut, width in gaps if width > 0]


def fit_thresholds(labels: Labels, target: str = "average_macro_f1") -> dict[Domain, float]:
    """Fits a cut per domain to a corpus-level target.

    A domain gets a cut only if it beats the labels as they were written. Of equally good cuts the one in the widest
    gap between two probabilities is taken, in its middle: it stands furthest from any pair.

    Args:
        labels: Gold, labels as written, and their probabilities; of training pairs.
        target: What to raise.

    Returns:
        The cuts, in [0, 1]; domains without one keep the label as written.
    """
    if target != "joint_accuracy":
        return _raised(labels, target, {})
    # From no cuts at all, one domain's cut alone rarely makes a pair right as a whole: begin with each domain's best.
    found = _raised(labels, "average_macro_f1", {})
    for _ in range(_ROUNDS):
        before, found = found, _raised(labels, target, found)
        if found == before:
            break
    better = target_value(cut_labels(labels, found), target) > target_value(labels, target) + _LEAST
    return found if better else {}


def _raised(labels: Labels, target: str, start: Mapping[Domain, float]) -> dict[Domain, float]:
    """Returns cuts after one pass over the domains; a domain's cut changes only where the target rises."""
    found = dict(start)
    for column, domain in enumerate(DOMAINS):
        known = (labels.gold[:, column] >= 0) & (labels.predicted[:, column] >= 0)
        cuts = candidate_cuts(labels.probability[known, column])
        best = _best(cuts, lambda cut, d=domain: target_value(cut_labels(labels, {**found, d: cut}), target))  # type: ignore[misc]
        if best is not None and best[0] > target_value(cut_labels(labels, found), target) + _LEAST:
            found[domain] = best[1]
    return found


def _best(cuts: list[tuple[float, float]], value: Callable[[float], float]) -> tuple[float, float] | None:
    """Returns (value, cut) of the best cut; ties go to the widest gap, then to the one nearest 0.5."""
    scored = [(value(cut), width, -abs(cut - 0.5), cut) for cut, width in cuts]
    scored = [entry for entry in scored if not np.isnan(entry[0])]
    if not scored:
        return None
    top = max(scored)
    return top[0], top[3]
