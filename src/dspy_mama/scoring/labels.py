"""Gold labels and verdicts as arrays: where records end and numbers begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from dspy_mama.core import DOMAINS, PHASES, DeclarationError, Domain, UnscoredKind
from dspy_mama.core.confusion import EXCLUDED, FP, TP, Codes, confusion_codes
from dspy_mama.core.ids import asked, content_hash

RISKY: Final = 1
SAFE: Final = 0
MISSING: Final = -1

KINDS: Final[tuple[str, ...]] = (*get_args(UnscoredKind), "undetermined", "not_run")
"""Why a verdict is missing: the five kinds of `Unscored`, a tie left undetermined, a phase that was not reached."""

COLUMNS: Final = (*DOMAINS, "joint")
"""Columns of `Labels.codes`: the domains, then all three together."""

LabelSource = Literal["initial", "verification", "consensus", "final"]


@dataclass(frozen=True)
class Labels:
    """What one system said about each pair, beside what the experts said. Columns are the domains, in their order.

    Attributes:
        ids: Id of each pair.
        repeats: Which repetition of the pair a row is, shape (n,).
        gold: 1 risky, 0 safe, -1 no gold; shape (n, 3).
        predicted: 1 risky, 0 safe, -1 unscored; shape (n, 3).
        probability: Probability of risk in [0, 1], NaN where there is none; shape (n, 3).
        kinds: Index into `KINDS` of why a verdict is missing, -1 where it is not; shape (n, 3).
        clusters: Rows with the same number are resampled together, shape (n,); None = every row is its own.
    """

    ids: tuple[str, ...]
    repeats: npt.NDArray[np.int64]
    gold: npt.NDArray[np.int8]
    predicted: npt.NDArray[np.int8]
    probability: npt.NDArray[np.float64]
    kinds: npt.NDArray[np.int8]
    clusters: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.ids)

    def codes(self) -> Codes:
        """Returns confusion codes, shape (n, 4), columns as in `COLUMNS`.

        The joint column is a true positive where all three verdicts are right and a false positive where one is
        wrong; it is excluded unless all three domains have gold and a verdict.
        """
        domains = confusion_codes(self.gold, self.predicted)
        complete = (domains != EXCLUDED).all(axis=1)
        right = (self.gold == self.predicted).all(axis=1)
        joint = np.where(complete, np.where(right, TP, FP), EXCLUDED).astype(np.int8)
        return np.column_stack([domains, joint])

    def worst_case(self) -> Labels:
        """Returns the labels as they would be if every missing verdict were wrong."""
        wrong = np.where((self.predicted < 0) & (self.gold >= 0), 1 - self.gold, self.predicted)
        return replace(self, predicted=wrong.astype(np.int8))

    def rows(self, index: npt.NDArray[np.intp]) -> Labels:
        """Returns the chosen rows, in the given order."""
        arrays = {name: getattr(self, name)[index] for name in ("repeats", "gold", "predicted", "probability", "kinds")}
        clusters = None if self.clusters is None else self.clusters[index]
        return Labels(ids=tuple(self.ids[i] for i in index), clusters=clusters, **arrays)


def _truth(value: Any, what: str, pair: str) -> int:
    """Reads a native truth value; a string or a number here would be a guess."""
    if value is None:
        return MISSING
    if isinstance(value, (bool, np.bool_)):
        return RISKY if value else SAFE
    raise DeclarationError(f"pair {pair!r}: {what} must be true, false or null, not {value!r}")


def _probability(value: Any, domain: str, pair: str) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, (bool, str)) or not 0 <= value <= 1:
        raise DeclarationError(
            f"pair {pair!r}: probability of {domain} risk must lie in [0, 1] or be null, not {value!r}"
        )
    return float(value)


def _kind(verdict: Mapping[str, Any] | None, pair: str) -> int:
    """Returns why a verdict without a label is missing."""
    if verdict is None:
        return KINDS.index("not_run")
    outcome = verdict.get("outcome", "scored")
    if outcome == "scored":
        return KINDS.index("undetermined")
    if outcome not in KINDS:
        raise DeclarationError(f"pair {pair!r}: unknown outcome {outcome!r}; known: scored, {', '.join(KINDS[:5])}")
    return KINDS.index(outcome)


_FINAL: Final[dict[Any, bool | None]] = {"risky": True, "safe": False, "undetermined": None}


def _verdict(record: Mapping[str, Any], source: LabelSource, domain: Domain) -> tuple[int, float, int]:
    """Returns label, probability and kind of one verdict."""
    pair = str(record.get("id"))
    phase = record.get("final_phase") if source == "final" else source
    verdict = ((record.get("phases") or {}).get(phase) or {}).get(domain)
    risk = (verdict or {}).get("risk") if (verdict or {}).get("outcome", "scored") == "scored" else None
    if source == "final":
        said = (record.get("verdicts") or {}).get(domain, "undetermined")
        if said not in _FINAL:
            raise DeclarationError(f"pair {pair!r}: verdict must be one of {', '.join(_FINAL)}, not {said!r}")
        risk = _FINAL[said]
    label = _truth(risk, f"{domain} risk", pair)
    if label == MISSING:
        return MISSING, float("nan"), _kind(verdict, pair)
    return label, _probability((verdict or {}).get("probability"), domain, pair), -1


def labels_from_records(
    records: Sequence[Mapping[str, Any]], source: LabelSource = "final", *, cluster_by_question: bool = False
) -> Labels:
    """Reads gold labels and one phase's verdicts out of records.

    Rows that repeat a pair form one cluster, since they are not independent pairs.

    Args:
        records: Rows of `records.jsonl`.
        source: A phase, or `final` for the verdicts after thresholds.
        cluster_by_question: Resample pairs with the same question together.

    Raises:
        DeclarationError: A record holds a label, probability or outcome that is none, or clustering by question is
            asked of records without questions.
    """
    n = len(records)
    gold = np.full((n, len(DOMAINS)), MISSING, dtype=np.int8)
    predicted, kinds = gold.copy(), gold.copy()
    probability = np.full((n, len(DOMAINS)), np.nan)
    for row, record in enumerate(records):
        given = record.get("gold") or {}
        for column, domain in enumerate(DOMAINS):
            gold[row, column] = _truth(given.get(domain), f"{domain} gold", str(record.get("id")))
            predicted[row, column], probability[row, column], kinds[row, column] = _verdict(record, source, domain)
    ids = tuple(str(record["id"]) for record in records)
    repeats = np.array([int(record.get("repeat") or 0) for record in records], dtype=np.int64)
    return Labels(ids, repeats, gold, predicted, probability, kinds, _clusters(records, ids, cluster_by_question))


def _clusters(
    records: Sequence[Mapping[str, Any]], ids: tuple[str, ...], by_question: bool
) -> npt.NDArray[np.int64] | None:
    if by_question:
        absent = [str(record["id"]) for record in records if not record.get("question")]
        if absent:
            raise DeclarationError(
                f"clustering by question needs the questions, but {len(absent)} records (first: {absent[0]!r}) hold "
                "none; run with tracking.store_text=true"
            )
        keys = [content_hash(asked(str(record["question"]))) for record in records]
    elif len(set(ids)) < len(ids):
        keys = list(ids)
    else:
        return None
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def labels_from_arrays(
    gold: npt.ArrayLike, predicted: npt.ArrayLike, probability: npt.ArrayLike | None = None, ids: Sequence[str] = ()
) -> Labels:
    """Builds labels from plain arrays of shape (n, 3); 1 risky, 0 safe, -1 missing.

    Raises:
        DeclarationError: Shapes differ or a value is none of the three.
    """
    gold_array, predicted_array = np.asarray(gold, dtype=np.int8), np.asarray(predicted, dtype=np.int8)
    if gold_array.shape != predicted_array.shape or gold_array.ndim != 2 or gold_array.shape[1] != len(DOMAINS):
        raise DeclarationError(
            f"gold {gold_array.shape} and predictions {predicted_array.shape} must both be (pairs, {len(DOMAINS)})"
        )
    if not (np.isin(gold_array, (-1, 0, 1)).all() and np.isin(predicted_array, (-1, 0, 1)).all()):
        raise DeclarationError("labels must be 1 (risky), 0 (safe) or -1 (missing)")
    n = len(gold_array)
    chances = np.full(gold_array.shape, np.nan) if probability is None else np.asarray(probability, dtype=np.float64)
    kinds = np.where(predicted_array < 0, KINDS.index("undetermined"), -1).astype(np.int8)
    names = tuple(ids) or tuple(str(i) for i in range(n))
    return Labels(names, np.zeros(n, dtype=np.int64), gold_array, predicted_array, chances, kinds)


def phases_run(records: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Returns the phases that ran for at least one record: the audit's in their order, then those of other systems."""
    ran = dict.fromkeys(phase for record in records for phase in record.get("phases") or {})
    return (*(phase for phase in PHASES if phase in ran), *(phase for phase in ran if phase not in PHASES))


def align(first: Labels, second: Labels) -> tuple[Labels, Labels]:
    """Returns the rows that both systems judged, in the first one's order, matched by id and repetition.

    Raises:
        DeclarationError: They share no pair, a key occurs twice in one of them, or their gold labels contradict.
    """
    keys = [list(zip(labels.ids, labels.repeats.tolist(), strict=True)) for labels in (first, second)]
    for which, own in zip(("first", "second"), keys, strict=True):
        if len(set(own)) < len(own):
            raise DeclarationError(f"the {which} system holds the same pair twice; ids must be unique within a run")
    where = {key: row for row, key in enumerate(keys[1])}
    rows = [(row, where[key]) for row, key in enumerate(keys[0]) if key in where]
    if not rows:
        raise DeclarationError("the two systems share no pair: their ids differ")
    left, right = (
        labels.rows(np.array(index)) for labels, index in zip((first, second), zip(*rows, strict=True), strict=True)
    )
    clash = ((left.gold >= 0) & (right.gold >= 0) & (left.gold != right.gold)).any(axis=1)
    if clash.any():
        named = ", ".join(left.ids[i] for i in np.flatnonzero(clash)[:5])
        raise DeclarationError(f"gold labels of {int(clash.sum())} pairs differ between the two systems ({named})")
    return left, right
