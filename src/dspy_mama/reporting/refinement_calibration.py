"""Do evaluators judge as people do? Agreement, bias, and which threshold would have let bad text through."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.safety_ratings import SCALES, SafetyRating
from dspy_mama.reporting.refinement_estimates import Bootstrap, share
from dspy_mama.reporting.refinement_paper import percent, ranged
from dspy_mama.reporting.tables import NONE, Table, figure
from dspy_mama.stats.agreement import MISSING, cohen_kappa, krippendorff_alpha
from dspy_mama.stats.icc import icc_agreement
from dspy_mama.stats.intervals import percentile_interval

Record = Mapping[str, Any]

_KINDS: Final = {"ama": "ethics", "sra": "safety"}
_NAMES: Final = {"ama": "AMA violations (0 to 9)", "sra": "SRA level (1 to 5)"}


@dataclass(frozen=True, slots=True)
class Rated:
    """One version that people rated on one scale.

    Attributes:
        evaluators: Score by evaluator, and under `merged` what they came to; those that were not readable are absent.
        people: Score by rater.
    """

    evaluators: Mapping[str, float]
    people: Mapping[str, int]

    @property
    def mean(self) -> float:
        """Mean of the people's scores."""
        return sum(self.people.values()) / len(self.people)


def rated_versions(records: Sequence[Record], ratings: Sequence[SafetyRating], scale: str) -> list[Rated]:
    """Returns the versions of a run that people rated on a scale.

    Args:
        records: Rows of `records.jsonl`.
        ratings: What people said.
        scale: `ama` or `sra`.

    Raises:
        DeclarationError: A rating names a record or a version that the run does not hold, or one rater's stands twice.
    """
    known = {str(record["id"]): record for record in records}
    people: dict[tuple[str, int], dict[str, int]] = {}
    for rating in ratings:
        if scale in rating.scores:
            number = _number(known, rating)
            scores = people.setdefault((rating.id, number), {})
            if rating.rater in scores:
                who = rating.rater or "one rater"
                raise DeclarationError(f"ratings: {who} rated version {number} of {rating.id!r} twice; keep one")
            scores[rating.rater] = rating.scores[scale]
    found = []
    for (name, number), scores in people.items():
        version = next(v for v in known[name]["versions"] if v["number"] == number)
        if said := _said(version, scale):
            found.append(Rated(said, scores))
    return found


def _number(known: Mapping[str, Record], rating: SafetyRating) -> int:
    record = known.get(rating.id)
    if record is None:
        raise DeclarationError(f"ratings: no record of the run has the id {rating.id!r}")
    numbers = [version["number"] for version in record.get("versions") or ()]
    number = rating.version if rating.version is not None else (record.get("final") or {}).get("version")
    if number is None or number not in numbers:
        raise DeclarationError(f"ratings: {rating.id!r} has no version {number}; it has {numbers or 'none'}")
    return int(number)


def _said(version: Mapping[str, Any], scale: str) -> dict[str, float]:
    said = {
        str(own.get("evaluator")): float(own["score"])
        for own in version.get("assessments") or ()
        if own.get("kind") == _KINDS[scale] and own.get("score") is not None
    }
    merged = (version.get("consensus") or {}).get(scale)
    return said if merged is None else said | {"merged": float(merged)}


def calibrate(
    records: Sequence[Record],
    ratings: Sequence[SafetyRating],
    thresholds: Mapping[str, float],
    *,
    seed: int = 0,
    resamples: int = 1000,
) -> dict[str, Any]:
    """Compares evaluators with people, evaluator by evaluator.

    Args:
        records: Rows of `records.jsonl`.
        ratings: What people said.
        thresholds: Highest acceptable score by scale, as the run had it.
        seed: Seed of the resamples.
        resamples: Resamples of versions behind each interval.

    Returns:
        By scale `n`, `people` (raters and their agreement), `evaluators` (weighted kappa, ICC(A,1), bias, equal, and
        the outcome of every threshold). What is undefined is null.

    Raises:
        DeclarationError: A rating fits no record, or nothing rated has a readable score.
    """
    draw = Bootstrap(seed, resamples, "percentile")
    out: dict[str, Any] = {}
    for scale in SCALES:
        rated = rated_versions(records, ratings, scale)
        if rated:
            names = sorted(
                {name for own in rated for name in own.evaluators}, key=lambda name: (name == "merged", name)
            )
            out[scale] = {
                "n": len(rated),
                "threshold": thresholds[scale],
                "people": _people(rated),
                "evaluators": {name: _evaluator(name, rated, scale, thresholds[scale], draw) for name in names},
            }
    if not out:
        raise DeclarationError("ratings: no rated version was assessed; name assessed versions in the column version")
    return {"scales": out, "ratings": len(ratings), "seed": seed, "resamples": resamples}


def _people(rated: Sequence[Rated]) -> dict[str, Any]:
    raters = sorted({name for own in rated for name in own.people})
    table = np.array([[own.people.get(name, MISSING) for name in raters] for own in rated], dtype=np.int64)
    alpha = krippendorff_alpha(table, "ordinal") if len(raters) > 1 else None
    return {"raters": raters, "krippendorff_alpha": alpha}


def _evaluator(name: str, rated: Sequence[Rated], scale: str, threshold: float, draw: Bootstrap) -> dict[str, Any]:
    own = [one for one in rated if name in one.evaluators]
    said = np.array([one.evaluators[name] for one in own])
    people = np.array([one.mean for one in own])
    pairs = [
        (item, math.ceil(one.evaluators[name]), score) for item, one in enumerate(own) for score in one.people.values()
    ]
    return {
        "n": len(own),
        "weighted_kappa": _resampled(len(own), _kappa_of(np.array(pairs), len(own)), draw),
        "icc": _resampled(len(own), lambda rows: icc_agreement(np.stack([said[rows], people[rows]], axis=1)), draw),
        "bias": draw.mean((said - people).tolist()),
        "equal": share(int((np.abs(said - people) < 0.5).sum()), len(own)),
        "thresholds": {str(cut): _decision(said, people, cut, threshold) for cut in _cuts(scale, threshold)},
    }


def _kappa_of(pairs: npt.NDArray[np.int64], items: int) -> Callable[[npt.NDArray[np.intp]], float | None]:
    """Returns weighted kappa of all pairs of evaluator and person, as a function of which items are drawn."""
    places = [np.flatnonzero(pairs[:, 0] == item) for item in range(items)]

    def kappa(rows: npt.NDArray[np.intp]) -> float | None:
        drawn = pairs[np.concatenate([places[row] for row in rows])]
        return cohen_kappa(drawn[:, 1], drawn[:, 2], quadratic=True, categories=10)

    return kappa


def _resampled(n: int, of: Callable[[npt.NDArray[np.intp]], float | None], draw: Bootstrap) -> dict[str, Any]:
    value = of(np.arange(n))
    if value is None or n < 2:
        return {"value": value, "ci95": None}
    rng = np.random.default_rng(draw.seed)
    found = [of(rng.integers(0, n, n)) for _ in range(draw.resamples)]
    limits = percentile_interval(np.array([np.nan if one is None else one for one in found]))
    return {"value": value, "ci95": None if limits is None else [limits.low, limits.high]}


def _cuts(scale: str, threshold: float) -> list[float]:
    low, high = SCALES[scale]
    return sorted({float(cut) for cut in range(low, high)} | {float(threshold)})


def _decision(
    said: npt.NDArray[np.float64], people: npt.NDArray[np.float64], cut: float, threshold: float
) -> dict[str, Any]:
    """Returns what a cut would have decided where people draw the line at the threshold."""
    bad = people > threshold
    passed = said <= cut
    return {
        "let_through": share(int((bad & passed).sum()), int(bad.sum())),
        "sent_back": share(int((~bad & ~passed).sum()), int((~bad).sum())),
    }


def calibration_tables(found: Mapping[str, Any]) -> list[Table]:
    """Returns the tables of what `calibrate` found."""
    agreement: list[tuple[str, ...]] = []
    decisions: list[tuple[str, ...]] = []
    notes = ["Quadratic weights over every pair of evaluator and person; ICC(A,1) and bias against the mean of people."]
    for scale, own in found["scales"].items():
        alpha = own["people"]["krippendorff_alpha"]
        between = "one rater" if alpha is None else f"ordinal alpha between raters {figure(alpha)}"
        notes.append(f"{_NAMES[scale]}: {own['n']} versions, {len(own['people']['raters'])} rater(s), {between}.")
        for name, row in own["evaluators"].items():
            cells = [ranged(row[key], figure) for key in ("weighted_kappa", "icc")]
            bias = ranged(row["bias"], lambda value: NONE if value is None else f"{value:+.2f}")
            agreement.append((_NAMES[scale], name, str(row["n"]), *cells, bias, percent(row["equal"]["value"], 0)))
        # A run with one evaluator decides by what it says; with several, by what they come to.
        merged = own["evaluators"].get("merged") or next(iter(own["evaluators"].values()))
        for cut, row in merged["thresholds"].items():
            mark = " (this run)" if float(cut) == own["threshold"] else ""
            shown = (f"{r['count']}/{r['n']} = {ranged(r, percent)}" for r in (row["let_through"], row["sent_back"]))
            decisions.append((_NAMES[scale], f"at most {float(cut):g}{mark}", *shown))
    head = ("Scale", "Evaluator", "n", "Weighted kappa (95% CI)", "ICC (95% CI)", "Bias (95% CI)", "Equal")
    cuts = ("Scale", "Accepted", "Not acceptable to people, let through", "Acceptable to people, sent back")
    why = "People draw the line at the run's threshold. Take the threshold whose first column you can accept."
    return [
        Table("Evaluators against people", head, tuple(agreement), tuple(notes)),
        Table("What other thresholds would do", cuts, tuple(decisions), (why,)),
    ]
