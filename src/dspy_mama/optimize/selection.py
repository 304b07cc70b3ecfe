"""Programs measured on pairs, and the choice between them: corpus-level, with intervals, undetermined never right."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core.cases import DOMAINS, QAPair
from dspy_mama.core.confusion import EXCLUDED, TP, Codes, confusion_metrics
from dspy_mama.core.errors import ExecutionError
from dspy_mama.core.event_loop import run_sync
from dspy_mama.core.ids import content_hash
from dspy_mama.optimize.thresholds import target_value
from dspy_mama.scoring import Labels, labels_from_records
from dspy_mama.stats import Difference, Estimate, estimate, paired_difference, resample_counts
from dspy_mama.systems.audit import audit_record

TARGETS: Final = ("average_macro_f1", "joint_accuracy")
_WIDTH: Final = len(DOMAINS) + 1


@dataclass(frozen=True)
class Evaluation:
    """A program on some pairs.

    Attributes:
        records: An audit record a pair, in the pairs' order.
        labels: Gold and final verdicts.
        failures: Pairs that could not be carried out at all, by id.
    """

    records: tuple[dict[str, Any], ...]
    labels: Labels = field(repr=False)
    failures: Mapping[str, str] = field(default_factory=dict)

    def value(self, target: str) -> float:
        """Returns the target; a missing verdict counts as wrong, NaN without gold."""
        return target_value(self.labels, target)

    def estimate(self, target: str, *, seed: int = 0, resamples: int = 1000) -> Estimate:
        """Returns the target with its bootstrap interval over pairs."""
        codes = self.labels.worst_case().codes()
        draws = resample_counts(codes, np.random.default_rng(seed), resamples, clusters=self.labels.clusters)
        return estimate(draws, lambda table: _target(table, 0, codes, target))


def evaluate(program: Any, pairs: Sequence[QAPair], threads: int = 4) -> Evaluation:
    """Runs a program on pairs; one that fails has no verdict, and the others go on.

    Args:
        program: A `RiskAuditor`.
        pairs: Pairs with gold.
        threads: Pairs in flight.

    Raises:
        DeclarationError: LM or settings are at fault.
    """
    return run_sync(_evaluate(program, pairs, threads))


async def _evaluate(program: Any, pairs: Sequence[QAPair], width: int) -> Evaluation:
    gate = asyncio.Semaphore(width)
    failures: dict[str, str] = {}

    async def one(pair: QAPair) -> dict[str, Any]:
        async with gate:
            try:
                record = audit_record(pair, await program.acall(question=pair.question, answer=pair.answer))
            except ExecutionError as error:
                failures[pair.id] = str(error)
                record = {
                    "id": pair.id, "source": pair.source, "question": pair.question, "answer": pair.answer,
                    "gold": {d: pair.gold.get(d) for d in DOMAINS}, "phases": {}, "final_phase": "initial",
                    "verdicts": dict.fromkeys(DOMAINS, "undetermined"), "needs_review": True, "usage": {},
                    "models": {}, "error": str(error),
                }  # fmt: skip
            return {"key": content_hash(f"{pair.id}\n{pair.question}\n{pair.answer}", 16), "repeat": 0, **record}

    tasks = [asyncio.ensure_future(one(pair)) for pair in pairs]
    try:
        records = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()  # after one that ends it all, no other may go on spending
    return evaluation_of(records, failures)


def evaluation_of(records: Sequence[dict[str, Any]], failures: Mapping[str, str] | None = None) -> Evaluation:
    """Returns records as an evaluation; pairs with the same question are resampled together."""
    labels = labels_from_records(list(records), "final", cluster_by_question=bool(records))
    return Evaluation(tuple(records), labels, dict(failures or {}))


def compare(first: Evaluation, second: Evaluation, target: str, *, seed: int = 0, resamples: int = 1000) -> Difference:
    """Returns second minus first on the same pairs, with its paired bootstrap interval."""
    one, two = first.labels.worst_case().codes(), second.labels.worst_case().codes()
    codes = np.hstack([one, two])
    draws = resample_counts(codes, np.random.default_rng(seed), resamples, clusters=first.labels.clusters)
    return paired_difference(
        draws, lambda table: _target(table, 0, one, target), lambda table: _target(table, _WIDTH, two, target)
    )


def _target(
    table: npt.NDArray[np.float64] | npt.NDArray[np.int64], start: int, codes: Codes, target: str
) -> npt.NDArray[np.float64]:
    """Returns the target of counts of shape (..., columns, 4); domains without gold have no part in it."""
    if target == "joint_accuracy":
        joint = table[..., start + len(DOMAINS), :]
        total = joint.sum(axis=-1)
        return np.where(total > 0, joint[..., TP] / np.maximum(total, 1), np.nan)
    scored = [column for column in range(len(DOMAINS)) if (codes[:, column] != EXCLUDED).any()]
    values = [confusion_metrics(table[..., start + column, :])["macro_f1"] for column in scored]
    return np.asarray(np.mean(values, axis=0) if values else np.full(table.shape[:-2], np.nan), dtype=np.float64)
