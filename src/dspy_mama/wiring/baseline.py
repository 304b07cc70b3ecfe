"""Runs of supervised baselines: judged out of fold, kept and logged as the LM systems' runs are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ports import Embedder
from dspy_mama.datasets import load_pairs
from dspy_mama.reporting import flat_metrics, summarise
from dspy_mama.runtime import PairKind, pair_key
from dspy_mama.settings import Settings, to_mapping
from dspy_mama.systems.supervised import Learner, OutOfFold, baseline_records, cross_validate, make_learner
from dspy_mama.systems.supervised.crossval import OnFold
from dspy_mama.wiring.build import build_tracker
from dspy_mama.wiring.lifecycle import RunPlan, StudyResult, carry_out, spec_groups
from dspy_mama.wiring.study import bootstrap_of, write_pictures

logger = logging.getLogger(__name__)

LM_GROUPS: Final = (
    "system", "ablation", "lm", "retriever", "corpus", "optimizer", "refiner", "panel"
)  # fmt: skip
"""Groups of settings that a baseline does not read."""


def baseline_embedder(settings: Settings) -> Embedder | None:
    """Returns the embedder with its cache for a baseline that reads sentence vectors, else None.

    Raises:
        DeclarationError: The embedder's package, key or model is missing, or the cache cannot be written.
    """
    if settings.baseline.name != "embedding":
        return None
    from dspy_mama.retrieval import cached_embedder

    return cached_embedder(settings.embedder, settings.retriever)


async def run_baseline(
    settings: Settings,
    *,
    pairs: Sequence[QAPair] | None = None,
    drop_faulty: bool = False,
    tags: Mapping[str, str] | None = None,
    on_fold: OnFold | None = None,
) -> StudyResult:
    """Cross-validates the baseline of the settings on their data and writes everything a run leaves.

    Args:
        settings: The run; its `baseline`, `embedder`, `data`, `tracking` and `experiment` are read.
        pairs: Pairs with gold labels; None = those of `settings.data`.
        drop_faulty: Leave faulty rows of the data out instead of refusing the file.
        tags: Further tags of the run in the tracker.
        on_fold: Told of each fold that begins.

    Raises:
        DeclarationError: Settings or data are at fault, a package is missing, or there is nothing to learn.
    """
    build_tracker(settings)  # an address that MLflow refuses is found before anything is trained
    facts: dict[str, Any] = {}
    if pairs is None:
        loaded = load_pairs(settings.data, on_fault="drop" if drop_faulty else "raise")
        pairs, facts = loaded.pairs, loaded.facts
        for fault in loaded.faults:
            logger.warning("left out: %s", fault)
    chosen = settings.baseline
    learner = make_learner(chosen, baseline_embedder(settings))
    found = await asyncio.to_thread(
        cross_validate, pairs, learner, folds=chosen.folds, seed=chosen.seed, on_fold=on_fold
    )
    refuse_nothing_learnt(found, settings)
    return await carry_out(_plan(settings, found, learner, facts, tags or {}))


def refuse_nothing_learnt(found: OutOfFold, settings: Settings) -> None:
    """Raises where no domain could be learnt.

    Raises:
        DeclarationError: No domain of the data has two questions of each class.
    """
    if all(domain.problem for domain in found.domains.values()):
        reasons = "; ".join(f"{name}: {domain.problem}" for name, domain in found.domains.items())
        raise DeclarationError(
            f"data={settings.data.name}: a baseline learns from gold labels, and there is nothing to learn ({reasons})"
        )


def _plan(
    settings: Settings, found: OutOfFold, learner: Learner, facts: Mapping[str, Any], tags: Mapping[str, str]
) -> RunPlan[QAPair]:
    records = {pair_key(pair): record for pair, record in zip(found.pairs, baseline_records(found), strict=True)}

    async def look_up(pair: QAPair) -> dict[str, Any]:
        return records[pair_key(pair)]

    own = {"system": "baseline", "baseline": settings.baseline.name, "ablation": "none", "lm": "none"}
    # Records are looked up, in no time: a bar would only flicker.
    quiet = replace(settings, runtime=replace(settings.runtime, progress=False))
    return RunPlan(
        settings=quiet,
        verb="baseline",
        items=found.pairs,
        kind=PairKind(),
        work=look_up,
        program=None,
        state=lambda: baseline_state(found, learner),
        spec=baseline_spec(settings, facts, learner),
        summarise=lambda rows: summarise(rows, **bootstrap_of(to_mapping(settings.experiment))),
        pictures=write_pictures,
        metrics=flat_metrics,
        name=f"baseline/{settings.baseline.name}",
        words=("judged", "pair"),
        facts=facts,
        tags={**own, **tags},
    )


def baseline_spec(settings: Settings, facts: Mapping[str, Any], learner: Learner) -> dict[str, Any]:
    """Returns what `spec.json` holds: the settings that a baseline reads, and what identifies its data and model."""
    unread = [*LM_GROUPS] if settings.baseline.name == "embedding" else [*LM_GROUPS, "embedder"]
    groups = spec_groups(settings, unread)
    if settings.baseline.name != "bert":
        groups["baseline"] = {name: value for name, value in groups["baseline"].items() if name != "bert"}
    data = {key: facts.get(key) for key in ("files", "label_definition", "selected")}
    return {"name": "baseline", **groups, "data_facts": data, "learner": learner.id}


def baseline_state(found: OutOfFold, learner: Learner) -> dict[str, Any]:
    """Returns `program.json`: which fold each pair was held out in, and what was chosen without it."""
    domains = {
        name: {
            "folds": domain.folds,
            "problem": domain.problem,
            "chosen": [dict(facts) for facts in domain.facts],
            "held_out_in": {pair.id: int(fold) for pair, fold in zip(found.pairs, domain.fold, strict=True)},
        }
        for name, domain in found.domains.items()
    }
    state = {"kind": "supervised_baseline", "learner": found.learner, "domains": domains}
    truncation = getattr(learner, "truncation", None)
    return state if truncation is None else {**state, "truncation": truncation}
