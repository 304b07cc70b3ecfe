"""Scores with their intervals, and paired differences, as the plain data that `score --json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DOMAINS
from dspy_mama.core.confusion import METRICS, TP, Codes, confusion_metrics, one_class
from dspy_mama.scoring import (
    COLUMNS,
    Labels,
    align,
    labels_from_records,
    number,
    phases_run,
    score_labels,
    scored_probabilities,
)
from dspy_mama.scoring.labels import LabelSource
from dspy_mama.stats import (
    CountDraws,
    Interval,
    estimate,
    paired_difference,
    percentile_interval,
    resample_counts,
    resample_probabilities,
    shared_pairs,
)
from dspy_mama.stats.intervals import Method, Statistic

WIDTH: Final = len(COLUMNS)
JOINT: Final = COLUMNS.index("joint")
Pair = tuple[str, str]


def _domain(column: int, metric: str) -> Statistic:
    return lambda counts: confusion_metrics(counts[..., column, :])[metric]


def _joint(start: int) -> Statistic:
    return lambda counts: confusion_metrics(counts[..., start + JOINT, :])["accuracy"]


def _average(start: int, averaged: Sequence[int]) -> Statistic:
    columns = [start + column for column in averaged]
    return lambda counts: cast(
        "npt.NDArray[np.float64]", confusion_metrics(counts[..., columns, :])["macro_f1"].mean(axis=-1)
    )


def bounds(interval: Interval | None) -> list[float] | None:
    """Returns an interval as `[low, high]`."""
    return None if interval is None else [interval.low, interval.high]


def score_systems(
    systems: Mapping[str, Labels],
    pairs: Sequence[Pair] = (),
    *,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
) -> dict[str, Any]:
    """Scores systems (or phases) on the same rows, and the differences asked for, all on the same resamples.

    Args:
        systems: Labels by name, each over the same rows in the same order (`scoring.align` gives that).
        pairs: (first, second): second minus first is reported under `first->second`.
        seed: Seed of the resamples.
        resamples: Number of resamples.
        method: Kind of interval; probability metrics always take percentiles.

    Returns:
        `systems`: name -> score with `ci95`, and `deltas`: `first->second` -> differences.
    """
    systems = _in_one_order(systems)
    codes = {name: labels.codes() for name, labels in systems.items()}
    blocks: list[Codes] = list(codes.values())
    places = {name: position * WIDTH for position, name in enumerate(systems)}
    starts = [_place(first, second, codes, places, blocks) for first, second in pairs]
    clusters = next((labels.clusters for labels in systems.values()), None)
    columns = np.hstack(blocks) if blocks else np.zeros((0, 0), dtype=np.int8)
    rng, chances = np.random.default_rng(seed).spawn(2)
    counts = resample_counts(columns, rng, resamples, clusters=clusters)
    scores = {}
    for name, labels in systems.items():
        score = score_labels(labels)
        _add_intervals(score, counts, places[name], method)
        _add_probability_intervals(score, labels, chances, resamples)
        scores[name] = score | {"seed": seed, "resamples": resamples, "method": method, "units": counts.units}
    deltas = {
        f"{first}->{second}": _deltas(counts, *start, method)
        for (first, second), start in zip(pairs, starts, strict=True)
    }
    return {"systems": scores, "deltas": deltas}


def _in_one_order(systems: Mapping[str, Labels]) -> dict[str, Labels]:
    """Sorts the rows by id: intervals depend neither on which pair finished first nor on how a file is sorted."""
    first = next(iter(systems.values()), None)
    if first is None:
        return {}
    keys = [(len(name), name, repeat) for name, repeat in zip(first.ids, first.repeats.tolist(), strict=True)]
    index = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
    if (np.diff(index) > 0).all():
        return dict(systems)
    return {name: labels.rows(index) for name, labels in systems.items()}


def _place(
    first: str, second: str, codes: Mapping[str, Codes], places: Mapping[str, int], blocks: list[Codes]
) -> tuple[int, int]:
    """Returns where the columns of the pairs that both scored begin; they are added where no system has them."""
    found = []
    for name, shared in zip((first, second), shared_pairs(codes[first], codes[second]), strict=True):
        if np.array_equal(shared, codes[name]):
            found.append(places[name])
        else:
            found.append(len(blocks) * WIDTH)
            blocks.append(shared)
    return found[0], found[1]


def _add_intervals(score: dict[str, Any], counts: CountDraws, start: int, method: Method) -> None:
    for column, domain in enumerate(DOMAINS):
        own = score["domains"][domain]
        own["ci95"] = {
            metric: bounds(estimate(counts, _domain(start + column, metric), method=method).interval)
            for metric in METRICS
        }
        lacking = one_class(counts.draws[:, start + column]) if own["n"] else np.zeros(0, dtype=np.bool_)
        own["degenerate_resamples"] = int(lacking.sum())
    averaged = [DOMAINS.index(domain) for domain in score["average_domains"]]
    if averaged:
        found = estimate(counts, _average(start, averaged), method=method)
        score["average_macro_f1_ci95"] = bounds(found.interval)
    else:
        score["average_macro_f1_ci95"] = None
    score["joint_accuracy"]["ci95"] = bounds(estimate(counts, _joint(start), method=method).interval)


def _add_probability_intervals(score: dict[str, Any], labels: Labels, rng: np.random.Generator, resamples: int) -> None:
    for column, domain in enumerate(DOMAINS):
        rows, positive, probability = scored_probabilities(labels, column)
        if len(rows) < 2:
            continue
        clusters = None if labels.clusters is None else labels.clusters[rows]
        draws = resample_probabilities(positive, probability, rng, resamples, clusters=clusters)
        known = {name: values for name, values in draws.items() if score["domains"][domain][name] is not None}
        score["domains"][domain]["ci95"] |= {
            name: bounds(percentile_interval(values)) for name, values in known.items()
        }


def _delta(counts: CountDraws, first: Statistic, second: Statistic, method: Method) -> dict[str, Any]:
    found = paired_difference(counts, first, second, method=method)
    return {
        "value": found.value,
        "ci95": bounds(found.interval),
        "significant": found.significant,
        "finding": found.finding if found.value is not None else "not scored",
    }


def _deltas(counts: CountDraws, first: int, second: int, method: Method) -> dict[str, Any]:
    domains = {
        domain: {
            "n": int(counts.observed[first + column].sum()),
            **{
                metric: _delta(counts, _domain(first + column, metric), _domain(second + column, metric), method)
                for metric in METRICS
            },
        }
        for column, domain in enumerate(DOMAINS)
    }
    averaged = [column for column, domain in enumerate(DOMAINS) if domains[domain]["n"]]
    average: dict[str, Any] = {"value": None, "ci95": None, "significant": False, "finding": "not scored"}
    if averaged:
        average = _delta(counts, _average(first, averaged), _average(second, averaged), method)
    joint = _delta(counts, _joint(first), _joint(second), method)
    observed = counts.observed
    joint |= {
        "n": int(observed[first + JOINT].sum()),
        "correct": [int(observed[first + JOINT, TP]), int(observed[second + JOINT, TP])],
    }
    return {"domains": domains, "average_macro_f1": average, "joint_accuracy": joint}


def score_phases(
    records: Sequence[Mapping[str, Any]],
    *,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
    cluster_by_question: bool = False,
) -> dict[str, Any]:
    """Scores every phase that ran, the final verdicts, and the gain of each phase over the one before.

    Returns:
        `phases`, `final` and `deltas`, as `score_systems` builds them; the last delta spans all phases where more
        than two ran.

    Raises:
        DeclarationError: A record holds a label that is none.
    """
    ran = phases_run(records)
    systems = {
        name: labels_from_records(records, cast("LabelSource", name), cluster_by_question=cluster_by_question)
        for name in (*ran, "final")
    }
    pairs = list(pairwise(ran))
    if len(ran) > 2:
        pairs.append((ran[0], ran[-1]))
    found = score_systems(systems, pairs, seed=seed, resamples=resamples, method=method)
    final = found["systems"].pop("final")
    return {"phases": found["systems"], "final": final, "deltas": found["deltas"]}


def score(labels: Labels, *, seed: int = 0, resamples: int = 1000, method: Method = "percentile") -> dict[str, Any]:
    """Scores one system with intervals: what `score --json` prints."""
    found = score_systems({"system": labels}, seed=seed, resamples=resamples, method=method)
    return cast("dict[str, Any]", found["systems"]["system"])


def compare(
    first: Labels, second: Labels, names: Pair = ("first", "second"), *, seed: int = 0, resamples: int = 1000
) -> dict[str, Any]:
    """Compares two systems on the pairs that both judged, matched by id.

    Raises:
        DeclarationError: They share no pair, or their gold labels contradict.
    """
    left, right = align(first, second)
    return score_systems({names[0]: left, names[1]: right}, [names], seed=seed, resamples=resamples)


def flat_metrics(summary: Mapping[str, Any]) -> dict[str, float]:
    """Returns a summary's numbers under names such as `consensus/medical/macro_f1_low`, without the undefined ones."""
    out: dict[str, float | None] = {}
    for phase, values in [*summary["phases"].items(), ("final", summary["final"])]:
        for domain, own in values["domains"].items():
            for name, value in own.items():
                if value is None or isinstance(value, (int, float)):
                    out[f"{phase}/{domain}/{name}"] = value
            for name, limits in own["ci95"].items():
                _flat_bounds(out, f"{phase}/{domain}/{name}", limits)
        out[f"{phase}/average_macro_f1"] = values["average_macro_f1"]
        _flat_bounds(out, f"{phase}/average_macro_f1", values["average_macro_f1_ci95"])
        out[f"{phase}/joint_accuracy"] = values["joint_accuracy"]["value"]
        _flat_bounds(out, f"{phase}/joint_accuracy", values["joint_accuracy"]["ci95"])
        out[f"{phase}/unscored_rate"] = values["unscored"]["rate"]
    for phase, used in summary["usage"].items():
        out |= {f"usage/{phase}/{name}": used[name] for name in used if name != "unknown"}
    return {name: float(value) for name, value in out.items() if value is not None and number(value) is not None}


def _flat_bounds(out: dict[str, float | None], name: str, limits: Sequence[float] | None) -> None:
    if limits is not None:
        out[f"{name}_low"], out[f"{name}_high"] = limits
