"""Predictions out of fold: what judges a pair saw neither it nor another answer to its question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dspy_mama.core.cases import DOMAINS, Domain, QAPair
from dspy_mama.systems.supervised.folds import Ints, possible_folds, question_groups, stratified_folds
from dspy_mama.systems.supervised.learners import Learner

Floats = npt.NDArray[np.float64]
OnFold = Callable[[Domain, int, int], None]
"""Told of each fold that begins: its domain, its number from 1, and how many there are."""


@dataclass(frozen=True)
class DomainFolds:
    """One domain, out of fold.

    Attributes:
        folds: How many folds were made; 0 where nothing could be learnt.
        fold: Fold in which each pair was held out, 0-based; -1 where nothing could be learnt. Shape (n,).
        probability: p(risky) of each pair, NaN where nothing could be learnt. Shape (n,).
        risky: Label of each pair. Shape (n,).
        facts: What was chosen in each fold, and what it learnt from.
        problem: Why nothing could be learnt, or None.
    """

    folds: int
    fold: Ints
    probability: Floats
    risky: npt.NDArray[np.bool_]
    facts: tuple[Mapping[str, Any], ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class OutOfFold:
    """What a baseline says of every pair, out of fold.

    Attributes:
        learner: What learnt, in a few words.
        has_probabilities: Whether its probabilities rank pairs.
        pairs: The pairs.
        groups: Group of each pair; a group is never torn apart.
        domains: By domain.
    """

    learner: str
    has_probabilities: bool
    pairs: tuple[QAPair, ...]
    groups: Ints
    domains: Mapping[Domain, DomainFolds] = field(default_factory=dict)


def cross_validate(
    pairs: Sequence[QAPair],
    learner: Learner,
    *,
    folds: int = 5,
    seed: int = 0,
    groups: Ints | None = None,
    on_fold: OnFold | None = None,
) -> OutOfFold:
    """Judges every pair out of fold, domain by domain (stratified by its labels, grouped by question).

    Args:
        pairs: Pairs; those without gold in a domain are judged there, but teach nothing.
        learner: What learns; it makes its own choices on inner folds of what it is given.
        folds: Outer folds; fewer where a domain has fewer questions of a class.
        seed: Seed of the folds and of the learner.
        groups: Group of each pair; None = by question.
        on_fold: Told of each fold that begins.
    """
    groups = question_groups(pairs) if groups is None else groups
    found = {d: _domain(d, pairs, learner, folds, seed, groups, on_fold or _silent) for d in DOMAINS}
    return OutOfFold(learner.id, learner.has_probabilities, tuple(pairs), groups, found)


def _silent(domain: Domain, number: int, of: int) -> None:
    return


def gold_of(pairs: Sequence[QAPair], domain: Domain) -> Ints:
    """Returns 1 risky, 0 safe, -1 without gold."""
    return np.array([-1 if (gold := pair.gold.get(domain)) is None else int(gold) for pair in pairs], dtype=np.int64)


def learnable(labels: Ints, groups: Ints) -> str | None:
    """Returns why nothing can be learnt and judged out of fold, or None.

    Args:
        labels: 1 risky, 0 safe, -1 without gold.
        groups: Group of each row.
    """
    known = labels >= 0
    if not known.any():
        return "no gold label to learn from"
    for label, name in ((1, "risky"), (0, "safe")):
        questions = len(set(groups[labels == label].tolist()))
        if questions < 2:
            return f"only {questions} question(s) with a {name} answer: two are needed, one to learn from, one to judge"
    return None


def _domain(
    domain: Domain,
    pairs: Sequence[QAPair],
    learner: Learner,
    wanted: int,
    seed: int,
    groups: Ints,
    on_fold: OnFold,
) -> DomainFolds:
    n, labels = len(pairs), gold_of(pairs, domain)
    fold, probability, risky = np.full(n, -1), np.full(n, np.nan), np.zeros(n, dtype=np.bool_)
    if problem := learnable(labels, groups):
        return DomainFolds(0, fold, probability, risky, problem=problem)
    known = np.flatnonzero(labels >= 0)
    count = possible_folds(labels[known], groups[known], wanted)
    splits = stratified_folds(labels[known], groups[known], count, seed)
    homes = {int(groups[known[row]]): number for number, (_, test) in enumerate(splits) for row in test}
    facts = []
    for number, (train, _) in enumerate(splits):
        on_fold(domain, number + 1, len(splits))
        seen = known[train]
        # A pair without gold goes where its question is held out; one of a question without any gold, to the first.
        held_out = [row for row, group in enumerate(groups.tolist()) if homes.get(group, 0) == number]
        fitted = learner.fit([pairs[row] for row in seen], labels[seen], groups[seen], seed)
        fold[held_out] = number
        probability[held_out] = fitted.probabilities([pairs[row] for row in held_out])
        risky[held_out] = probability[held_out] >= fitted.cut
        facts.append({**fitted.facts, "learnt_from": len(seen), "risky_among_them": int(labels[seen].sum())})
    return DomainFolds(len(splits), fold, probability, risky, tuple(facts))
