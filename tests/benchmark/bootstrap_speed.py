"""The bootstrap of every metric and domain beside the plain loop over scikit-learn, in one process, on the same rows.

Both make 1,000 resamples of 126 pairs and take the 2.5th and 97.5th percentiles of each metric. The loop calls
scikit-learn for each metric, domain and resample (and numpy for the calibration error, which scikit-learn lacks).
"""

from __future__ import annotations

import json
import statistics
import time
import warnings

import numpy as np
from sklearn import metrics as sk

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.probabilities import ECE_BINS, probability_bins
from dspy_mama.reporting import score
from dspy_mama.scoring import labels_from_arrays
from dspy_mama.scoring.labels import Labels

PAIRS, RESAMPLES, SEED, ROUNDS = 126, 1000, 0, 5
MACRO = {"labels": [0, 1], "average": "macro", "zero_division": 0}


def make_labels() -> Labels:
    """Labels with the paper's shares of risky pairs, and verdicts that are right four times of five."""
    rng = np.random.default_rng(7)
    gold = (rng.random((PAIRS, 3)) < (51 / 126, 8 / 126, 18 / 126)).astype(np.int8)
    said = np.where(rng.random((PAIRS, 3)) < 0.8, gold, 1 - gold).astype(np.int8)
    probability = np.clip(0.25 + 0.5 * said + rng.normal(0, 0.15, (PAIRS, 3)), 0, 1).round(2)
    return labels_from_arrays(gold, said, probability)


def calibration_error(gold: np.ndarray, chance: np.ndarray) -> float:
    """Expected calibration error of ten bins, as a loop would write it."""
    bins = probability_bins(chance)
    inside = [bins == number for number in range(ECE_BINS)]
    return sum(abs(chance[own].mean() - gold[own].mean()) * own.mean() for own in inside if own.any())


def plain_loop(labels: Labels) -> dict[str, list[float]]:
    """Intervals by name, from scikit-learn's own functions; rows are drawn as the library draws them."""
    counted, chances = np.random.default_rng(SEED).spawn(2)
    values: dict[str, list[float]] = {}
    for own in counted.integers(0, PAIRS, size=(RESAMPLES, PAIRS)):
        gold, said = labels.gold[own], labels.predicted[own]
        average = 0.0
        for column, domain in enumerate(DOMAINS):
            g, s = gold[:, column], said[:, column]
            macro = sk.f1_score(g, s, **MACRO)
            average += macro / 3
            values.setdefault(f"{domain}/macro_f1", []).append(macro)
            values.setdefault(f"{domain}/accuracy", []).append(sk.accuracy_score(g, s))
            values.setdefault(f"{domain}/precision", []).append(sk.precision_score(g, s, **MACRO))
            values.setdefault(f"{domain}/recall", []).append(sk.recall_score(g, s, **MACRO))
        values.setdefault("average", []).append(average)
        values.setdefault("joint", []).append(float((gold == said).all(axis=1).mean()))
    for column, domain in enumerate(DOMAINS):
        for own in chances.integers(0, PAIRS, size=(RESAMPLES, PAIRS)):
            g, p = labels.gold[own, column], labels.probability[own, column]
            both = 0 < g.sum() < len(g)
            values.setdefault(f"{domain}/auc", []).append(sk.roc_auc_score(g, p) if both else np.nan)
            some = sk.average_precision_score(g, p) if g.any() else np.nan
            values.setdefault(f"{domain}/average_precision", []).append(some)
            values.setdefault(f"{domain}/brier", []).append(sk.brier_score_loss(g, p, pos_label=1))
            values.setdefault(f"{domain}/ece", []).append(calibration_error(g, p))
    return {name: list(np.nanpercentile(own, [2.5, 97.5])) for name, own in values.items()}


def library(labels: Labels) -> dict[str, list[float]]:
    """The same intervals from one call."""
    found = score(labels, seed=SEED, resamples=RESAMPLES)
    out = {f"{d}/{name}": ci for d in DOMAINS for name, ci in found["domains"][d]["ci95"].items()}
    return out | {"average": found["average_macro_f1_ci95"], "joint": found["joint_accuracy"]["ci95"]}


def main() -> None:
    """Prints one JSON line; `ratio` is the loop's time over the library's."""
    labels = make_labels()
    library(labels)  # scipy and numpy load some of their parts on first use
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        ours = library(labels)
        times.append(time.perf_counter() - start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        theirs = plain_loop(labels)
        loop = time.perf_counter() - start
    assert set(ours) == set(theirs)
    apart = max(abs(a - b) for name in ours for a, b in zip(ours[name], theirs[name], strict=True))
    assert apart < 1e-12, f"intervals differ by {apart}"
    seconds = statistics.median(times)
    line = {
        "bench": "bootstrap_speed",
        "ratio": round(loop / seconds, 1),
        "library_seconds": round(seconds, 4),
        "loop_seconds": round(loop, 2),
        "intervals": len(ours),
        "largest_difference": float(apart),
        "pairs": PAIRS,
        "resamples": RESAMPLES,
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
