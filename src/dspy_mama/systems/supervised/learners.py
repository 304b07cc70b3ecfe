"""Classifiers of one domain: what they learn, and what of it is chosen on inner folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from dspy_mama.core.cases import QAPair
from dspy_mama.core.confusion import confusion_codes, confusion_counts, confusion_metrics
from dspy_mama.systems.supervised.features import Features
from dspy_mama.systems.supervised.folds import Ints, possible_folds, stratified_folds

Floats = npt.NDArray[np.float64]
Cut = Literal["half", "fitted"]

HALF = 0.5


@dataclass(frozen=True)
class Fitted:
    """A classifier that has learnt.

    Attributes:
        probabilities: From pairs to p(risky), shape (n,), each in [0, 1].
        cut: Risky from this probability up.
        facts: What was chosen on the way, as plain data.
        model: What a caller may look into (coefficients), or None.
    """

    probabilities: Callable[[Sequence[QAPair]], Floats]
    cut: float = HALF
    facts: Mapping[str, Any] = field(default_factory=dict)
    model: Any = None


class Learner(Protocol):
    """Learns one domain from labelled pairs."""

    @property
    def id(self) -> str:
        """What it is, in a few words, as records name it."""

    @property
    def has_probabilities(self) -> bool:
        """Whether its numbers rank pairs; those of a constant do not."""

    def fit(self, pairs: Sequence[QAPair], labels: Ints, groups: Ints, seed: int) -> Fitted:
        """Learns from pairs; sees no other.

        Args:
            pairs: Pairs to learn from.
            labels: 1 risky, 0 safe.
            groups: Pairs of one group stay together in every inner split.
            seed: Seed of inner splits and of training.
        """


class MajorityLearner:
    """Says the more frequent label of the training pairs to every pair."""

    id = "majority class"
    has_probabilities = False

    def fit(self, pairs: Sequence[QAPair], labels: Ints, groups: Ints, seed: int) -> Fitted:
        """Learns the share of risky pairs."""
        return constant(float(labels.mean()))


def constant(share: float) -> Fitted:
    """Returns a classifier that gives every pair the same probability."""
    return Fitted(lambda pairs: np.full(len(pairs), share), facts={"share_risky": round(share, 4)})


class LogisticLearner:
    """Logistic regression with balanced classes; regularisation, and the cut where asked, chosen on inner folds."""

    has_probabilities = True

    def __init__(
        self, id: str, features: Features, *, strengths: Sequence[float], inner_folds: int, cut: Cut = "half"
    ) -> None:
        """Makes the learner.

        Args:
            id: What it is, in a few words.
            features: What it sees of a pair.
            strengths: Inverse regularisations C to choose from.
            inner_folds: Folds on which they are compared.
            cut: `half` = 0.5; `fitted` = the best cut on the inner folds.
        """
        self.id, self._features = id, features
        self._strengths, self._inner, self._cut = sorted(strengths), inner_folds, cut

    def fit(self, pairs: Sequence[QAPair], labels: Ints, groups: Ints, seed: int) -> Fitted:
        """Chooses C by the balanced log loss of inner out-of-fold probabilities (ties: the smaller), then learns."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        if len(set(labels.tolist())) < 2:
            return constant(float(labels.mean()))
        # Matrices this small gain nothing from threads, and on a busy machine waiting for them took 15 times as long.
        with threadpool_limits(limits=1, user_api="blas"):
            return self._fit(pairs, labels, groups, seed)

    def _fit(self, pairs: Sequence[QAPair], labels: Ints, groups: Ints, seed: int) -> Fitted:
        inner = self._inner_probabilities(pairs, labels, groups, seed)
        strength = min(inner, key=lambda c: (round(balanced_log_loss(labels, inner[c]), 9), c))
        cut = best_cut(labels, inner[strength]) if self._cut == "fitted" else HALF
        transform, model = self._learn(pairs, labels, strength)
        return Fitted(
            lambda rows: _risky(model, transform(rows)),
            cut,
            {"C": strength, "cut": round(cut, 4)},
            (transform, model),
        )

    def _inner_probabilities(
        self, pairs: Sequence[QAPair], labels: Ints, groups: Ints, seed: int
    ) -> dict[float, Floats]:
        folds = possible_folds(labels, groups, self._inner)
        if folds < 2:  # one question of a class: nothing can be held out, so the strongest regularisation stands
            return {self._strengths[0]: np.full(len(labels), HALF)}
        found = {strength: np.full(len(labels), HALF) for strength in self._strengths}
        for train, test in stratified_folds(labels, groups, folds, seed):
            if len(set(labels[train].tolist())) < 2:
                continue
            transform = self._features.fit([pairs[row] for row in train])
            seen, held_out = (transform([pairs[row] for row in rows]) for rows in (train, test))
            for strength in self._strengths:
                found[strength][test] = _risky(_regression(strength).fit(seen, labels[train]), held_out)
        return found

    def _learn(self, pairs: Sequence[QAPair], labels: Ints, strength: float) -> tuple[Any, Any]:
        transform = self._features.fit(pairs)
        return transform, _regression(strength).fit(transform(pairs), labels)


def _regression(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, class_weight="balanced", max_iter=5000, tol=1e-6)


def _risky(model: Any, matrix: Any) -> Floats:
    return np.asarray(model.predict_proba(matrix)[:, list(model.classes_).index(1)], dtype=np.float64)


def balanced_log_loss(labels: Ints, probabilities: Floats) -> float:
    """Returns the mean over both classes of the mean log loss, so that the rarer class counts as much."""
    p = np.clip(probabilities, 1e-12, 1 - 1e-12)
    losses = np.where(labels == 1, -np.log(p), -np.log(1 - p))
    return float(np.mean([losses[labels == label].mean() for label in (0, 1) if (labels == label).any()]))


def best_cut(labels: Ints, probabilities: Floats) -> float:
    """Returns the cut with the best macro-F1, halfway between two probabilities; ties go to the one nearest 0.5."""
    values, gold = np.unique(probabilities), labels.astype(np.int8)[:, None]
    cuts = [HALF, *((values[1:] + values[:-1]) / 2).tolist()]

    def macro_f1(cut: float) -> float:
        codes = confusion_codes(gold, (probabilities >= cut).astype(np.int8)[:, None])
        return float(confusion_metrics(confusion_counts(codes)[0])["macro_f1"])

    return float(max(cuts, key=lambda cut: (round(macro_f1(cut), 9), -abs(cut - HALF))))
