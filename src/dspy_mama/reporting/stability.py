"""What repeated runs say of a setting: flips, agreement beyond chance, and the spread of every metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DOMAINS, DeclarationError
from dspy_mama.core.confusion import METRICS
from dspy_mama.reporting.evaluation import bounds
from dspy_mama.scoring import labels_from_records, phases_run, score_labels
from dspy_mama.scoring.labels import LabelSource
from dspy_mama.stats import Estimate, flip_rates, measure_stability, minority_shares

Record = Mapping[str, Any]
Ratings = npt.NDArray[np.int8]

NAMES: Final = {1: "risky", 0: "safe", -1: None}


def repeated_labels(records: Sequence[Record], phase: str) -> tuple[tuple[str, ...], dict[str, Ratings]]:
    """Returns the ids, and per domain the labels of shape (ids, repeats), -1 missing.

    Ids are sorted, so that resamples do not depend on which pair finished first.

    Args:
        records: Records of all repeats.
        phase: A phase, or `final`.

    Raises:
        DeclarationError: A pair stands twice in one repeat, or a record holds a label that is none.
    """
    labels = labels_from_records(records, cast("LabelSource", phase))
    ids = tuple(sorted(set(labels.ids)))
    row = {name: number for number, name in enumerate(ids)}
    repeats = sorted({int(repeat) for repeat in labels.repeats})
    column = {repeat: number for number, repeat in enumerate(repeats)}
    out = np.full((len(DOMAINS), len(ids), len(repeats)), -1, dtype=np.int8)
    seen: set[tuple[int, int]] = set()
    for name, repeat, predicted in zip(labels.ids, labels.repeats.tolist(), labels.predicted, strict=True):
        place = row[name], column[repeat]
        if place in seen:
            raise DeclarationError(f"pair {name!r} stands twice in repeat {repeat}; ids must be unique within a run")
        seen.add(place)
        out[:, place[0], place[1]] = predicted
    return ids, dict(zip(DOMAINS, out, strict=True))


def _estimate(name: str, found: Estimate) -> dict[str, Any]:
    undefined = found.interval.undefined if found.interval else 0
    return {name: found.value, f"{name}_ci95": bounds(found.interval), f"{name}_undefined_resamples": undefined}


def _flips(ids: Sequence[str], ratings: Ratings, phase: str, domain: str) -> list[dict[str, Any]]:
    rates, minority = flip_rates(ratings), minority_shares(ratings)
    return [
        {
            "id": ids[row],
            "phase": phase,
            "domain": domain,
            "labels": [NAMES[int(label)] for label in ratings[row]],
            "flip_rate": float(rates[row]),
            "minority_share": float(minority[row]),
        }
        for row in np.flatnonzero(rates > 0).tolist()
    ]


def _spread(values: Sequence[float | None]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    out: dict[str, Any] = {"n": len(known), "values": list(values), "mean": None, "sd": None, "min": None, "max": None}
    if known:
        out |= {"mean": float(np.mean(known)), "min": min(known), "max": max(known)}
    if len(known) > 1:
        out["sd"] = float(np.std(known, ddof=1))
    return out


def repeat_metrics(records: Sequence[Record]) -> dict[str, float | None]:
    """Returns the numbers of one repeat by names such as `consensus/medical/macro_f1`, without intervals."""
    out: dict[str, float | None] = {}
    for phase in (*phases_run(records), "final"):
        found = score_labels(labels_from_records(records, cast("LabelSource", phase)))
        for domain in DOMAINS:
            own = found["domains"][domain]
            out |= {f"{phase}/{domain}/{metric}": own[metric] for metric in (*METRICS, "auc")}
        out[f"{phase}/average_macro_f1"] = found["average_macro_f1"]
        out[f"{phase}/joint_accuracy"] = found["joint_accuracy"]["value"]
    return out


def by_repeat(records: Sequence[Record]) -> dict[int, list[Record]]:
    """Returns the records of each repeat, by its index."""
    out: dict[int, list[Record]] = {}
    for record in records:
        out.setdefault(int(record.get("repeat") or 0), []).append(record)
    return dict(sorted(out.items()))


def summarise_stability(records: Sequence[Record], *, seed: int = 0, resamples: int = 1000) -> dict[str, Any]:
    """Builds what `mama stability` says of one setting.

    Args:
        records: Records of all repeats; `repeat` says which one a record belongs to.
        seed: Seed of the resamples.
        resamples: Resamples of items behind each interval.

    Returns:
        Plain data without NaN. `phases`: per phase (and `final`) and domain `n` (items with two labels or more),
        `complete`, `missing`, `flipped`, `flip_rate` (chance that two runs disagree) and `fleiss_kappa` with `_ci95`;
        kappa is null where only one label was ever given. `metrics`: mean, sd, min, max and the values of each
        repeat. `flips`: the items that flip, most unstable first. `cache_hits`: replies that were no new samples.

    Raises:
        DeclarationError: Fewer than two repeats, or a pair twice in one of them.
    """
    repeats = by_repeat(records)
    if len(repeats) < 2:
        raise DeclarationError(f"stability needs at least two repeats of the same pairs, not {len(repeats)}")
    streams = np.random.default_rng(seed).spawn(len(DOMAINS) * 4)
    phases: dict[str, Any] = {}
    flips: list[dict[str, Any]] = []
    for phase in (*phases_run(records), "final"):
        ids, ratings = repeated_labels(records, phase)
        phases[phase] = {}
        for domain in DOMAINS:
            found = measure_stability(ratings[domain], streams.pop(), resamples)
            counts = {name: getattr(found, name) for name in ("n", "complete", "missing", "flipped")}
            estimates = _estimate("flip_rate", found.flip_rate) | _estimate("fleiss_kappa", found.kappa)
            phases[phase][domain] = counts | estimates
            flips += _flips(ids, ratings[domain], phase, domain)
    values = [repeat_metrics(own) for own in repeats.values()]
    return {
        "repeats": len(repeats),
        "items": len({str(record["id"]) for record in records}),
        "phases": phases,
        "metrics": {name: _spread([own.get(name) for own in values]) for name in values[0]},
        "flips": sorted(flips, key=lambda flip: -flip["flip_rate"]),
        "calls": _used(records, "calls"),
        "cache_hits": _used(records, "cache_hits"),
        "seed": seed,
        "resamples": resamples,
    }


def add_stability(summary: Mapping[str, Any], records: Sequence[Record]) -> dict[str, Any]:
    """Returns a run's summary with `stability` where its records are repeats, with the summary's own resamples."""
    if len(by_repeat(records)) < 2:
        return dict(summary)
    own = summarise_stability(records, seed=summary["seed"], resamples=summary["resamples"])
    return {**summary, "stability": own}


def _used(records: Sequence[Record], name: str) -> int:
    return sum(int(used.get(name) or 0) for record in records for used in (record.get("usage") or {}).values())


def _majority(ratings: Ratings) -> Ratings:
    """Returns the most frequent label per item; a tie has none (-1)."""
    risky, safe = (ratings == 1).sum(axis=1), (ratings == 0).sum(axis=1)
    return np.where(risky > safe, 1, np.where(safe > risky, 0, -1)).astype(np.int8)


def compare_settings(
    settings: Mapping[str, Sequence[Record]], *, seed: int = 0, resamples: int = 1000
) -> dict[str, Any] | None:
    """Says how far settings agree with one another: each one's majority label per pair, of the final verdicts.

    Args:
        settings: Records of all repeats by the setting's name.
        seed: Seed of the resamples.
        resamples: Resamples of items.

    Returns:
        Per domain what `summarise_stability` says of a phase (its `repeats` being the settings), and `flips`; None with
        a single setting. A tie between a setting's repeats counts as missing.
    """
    if len(settings) < 2:
        return None
    found = {name: repeated_labels(records, "final") for name, records in settings.items()}
    shared = [name for name, times in Counter(i for ids, _ in found.values() for i in ids).items() if times > 1]
    streams = np.random.default_rng(seed).spawn(len(DOMAINS))
    domains: dict[str, Any] = {}
    flips: list[dict[str, Any]] = []
    for domain, rng in zip(DOMAINS, streams, strict=True):
        columns = []
        for ids, ratings in found.values():
            label = dict(zip(ids, _majority(ratings[domain]).tolist(), strict=True))
            columns.append([label.get(name, -1) for name in shared])
        table = np.array(columns, dtype=np.int8).T.reshape(len(shared), len(settings))
        own = measure_stability(table, rng, resamples)
        counts = {name: getattr(own, name) for name in ("n", "complete", "missing", "flipped")}
        domains[domain] = counts | _estimate("flip_rate", own.flip_rate) | _estimate("fleiss_kappa", own.kappa)
        flips += _flips(shared, table, "final", domain)
    return {"settings": list(settings), "domains": domains, "flips": sorted(flips, key=lambda f: -f["flip_rate"])}


def stability_metrics(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns a setting's stability under names such as `stability/final/medical/fleiss_kappa`."""
    out: dict[str, float | None] = {"stability/repeats": summary["repeats"]}
    for phase, domains in summary["phases"].items():
        for domain, own in domains.items():
            for name, value in own.items():
                if name.endswith("_ci95"):
                    low, high = value or (None, None)
                    out |= {f"stability/{phase}/{domain}/{name[:-5]}_{side}": bound
                            for side, bound in (("low", low), ("high", high))}  # fmt: skip
                else:
                    out[f"stability/{phase}/{domain}/{name}"] = value
    for name, spread in summary["metrics"].items():
        out |= {f"spread/{name}_{part}": spread[part] for part in ("mean", "sd", "min", "max")}
    return out
