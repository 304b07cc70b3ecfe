"""Several systems on the same pairs: scores, paired differences and McNemar's test, all on shared resamples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DOMAINS, DeclarationError
from dspy_mama.core.confusion import EXCLUDED, TN, TP, Codes
from dspy_mama.reporting.evaluation import Pair, score_systems
from dspy_mama.scoring import COLUMNS, Labels
from dspy_mama.stats import holm, mcnemar_exact
from dspy_mama.stats.intervals import Method

_RIGHT: Final = (TP, TN)


def share_rows(systems: Mapping[str, Labels]) -> dict[str, Labels]:
    """Returns the rows that every system has, in the first one's order, with gold from whichever system has it.

    Raises:
        DeclarationError: They share no pair, one holds a pair twice, or their gold labels contradict.
    """
    keys = {name: list(zip(own.ids, own.repeats.tolist(), strict=True)) for name, own in systems.items()}
    for name, own in keys.items():
        if len(set(own)) < len(own):
            raise DeclarationError(f"{name} holds the same pair twice; ids must be unique within a run")
    places = {name: {key: row for row, key in enumerate(own)} for name, own in keys.items()}
    shared = [key for key in next(iter(keys.values())) if all(key in place for place in places.values())]
    if not shared:
        raise DeclarationError(f"the systems {', '.join(systems)} share no pair: their ids differ")
    rows = {name: own.rows(np.array([places[name][key] for key in shared])) for name, own in systems.items()}
    gold = _agreed_gold(rows)
    clusters = next((own.clusters for own in rows.values() if own.clusters is not None), None)
    return {name: replace(own, gold=gold, clusters=clusters) for name, own in rows.items()}


def _agreed_gold(rows: Mapping[str, Labels]) -> npt.NDArray[np.int8]:
    gold: npt.NDArray[np.int8] | None = None
    first = next(iter(rows))
    for name, own in rows.items():
        if gold is None:
            gold = own.gold.copy()
            continue
        clash = ((gold >= 0) & (own.gold >= 0) & (gold != own.gold)).any(axis=1)
        if clash.any():
            named = ", ".join(own.ids[row] for row in np.flatnonzero(clash)[:5])
            raise DeclarationError(
                f"gold labels of {int(clash.sum())} pairs differ between {first} and {name} ({named})"
            )
        gold = np.where(gold < 0, own.gold, gold).astype(np.int8)
    if gold is None:
        raise DeclarationError("there is no system to compare")
    return gold


def compare_systems(
    systems: Mapping[str, Labels],
    *,
    baseline: str | None = None,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
) -> dict[str, Any]:
    """Compares systems on the pairs that all of them judged.

    Args:
        systems: Labels by name, at least two; rows are matched by id and repetition.
        baseline: Compare each system with this one; None = every two systems.
        seed: Seed of the resamples.
        resamples: Number of resamples.
        method: Kind of interval.

    Returns:
        Plain data: `n` shared pairs, `left_out` rows by system, `systems` (scores by name) and `deltas`: under
        `first->second`, second minus first per domain, on average and jointly, each with `ci95` and `finding` (higher,
        lower, not distinguishable, not scored), and per domain and jointly `mcnemar`: pairs only one of them got
        right, exact two-sided `p`, and `p_holm`, adjusted for the number of system pairs compared on that measure.

    Raises:
        DeclarationError: Fewer than two systems, an unknown baseline, no shared pair, or gold labels that contradict.
    """
    if len(systems) < 2:
        raise DeclarationError("a comparison needs at least two systems")
    if baseline is not None and baseline not in systems:
        raise DeclarationError(f"baseline {baseline!r} is none of the systems: {', '.join(systems)}")
    rows = share_rows(systems)
    pairs: list[Pair] = (
        [(baseline, name) for name in systems if name != baseline] if baseline else list(combinations(systems, 2))
    )
    found = score_systems(rows, pairs, seed=seed, resamples=resamples, method=method)
    _add_mcnemar(found["deltas"], {name: own.codes() for name, own in rows.items()}, pairs)
    shared = len(next(iter(rows.values())))
    return {
        "n": shared,
        "names": list(systems),
        "left_out": {name: len(own) - shared for name, own in systems.items()},
        "seed": seed,
        "resamples": resamples,
        "method": method,
        **found,
    }


def _add_mcnemar(deltas: Mapping[str, Any], codes: Mapping[str, Codes], pairs: Sequence[Pair]) -> None:
    for column, name in enumerate(COLUMNS):
        tests = []
        for first, second in pairs:
            a, b = codes[first][:, column], codes[second][:, column]
            both = (a != EXCLUDED) & (b != EXCLUDED)
            only_first, only_second, p = mcnemar_exact(np.isin(a[both], _RIGHT), np.isin(b[both], _RIGHT))
            tests.append({"n": int(both.sum()), "only_first": only_first, "only_second": only_second, "p": p})
        for (first, second), test, adjusted in zip(pairs, tests, holm([t["p"] for t in tests]), strict=True):
            delta = deltas[f"{first}->{second}"]
            own = delta["domains"][name] if name in DOMAINS else delta["joint_accuracy"]
            own["mcnemar"] = {**test, "p_holm": adjusted} if test["n"] else None


def differing(systems: Mapping[str, Labels]) -> npt.NDArray[np.bool_]:
    """Says for each shared row and domain whether two systems gave different verdicts, unscored among them.

    Args:
        systems: Labels over the same rows, as `share_rows` gives them.

    Returns:
        Shape (rows, domains).
    """
    said = np.stack([own.predicted for own in systems.values()])
    return np.asarray((said != said[0]).any(axis=0), dtype=np.bool_)
