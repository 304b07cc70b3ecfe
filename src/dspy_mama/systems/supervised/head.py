"""Training of a head that ships as JSON: the regression on all pairs, its scaler folded into the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dspy_mama.core.cases import DOMAINS, Domain, QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ports import Embedder
from dspy_mama.scoring.logistic_head import DomainHead
from dspy_mama.settings import SupervisedSettings
from dspy_mama.systems.supervised.crossval import gold_of, learnable
from dspy_mama.systems.supervised.features import SentenceVectors
from dspy_mama.systems.supervised.folds import Ints
from dspy_mama.systems.supervised.learners import LogisticLearner

DIGITS = 6
"""Significant digits of a weight: enough for the same labels, few enough for a file that can be read."""


def train_domains(
    pairs: Sequence[QAPair], embedder: Embedder, settings: SupervisedSettings, groups: Ints
) -> dict[Domain, DomainHead]:
    """Learns each domain from all pairs; regularisation and cut are chosen by inner folds.

    Args:
        pairs: Pairs to learn from.
        embedder: What makes sentence vectors.
        settings: `text` (not `separate`), `strengths`, `inner_folds`, `cut`, `seed`.
        groups: Group of each pair; a group is never torn apart.

    Raises:
        DeclarationError: `text` is `separate`, or no domain can be learnt.
    """
    if settings.text == "separate":
        raise DeclarationError("baseline.text=separate: a head reads one vector; take answer or pair")
    features = SentenceVectors(embedder, settings.text)
    learner = LogisticLearner(
        "head", features, strengths=settings.strengths, inner_folds=settings.inner_folds, cut=settings.cut
    )
    found: dict[Domain, DomainHead] = {}
    for domain in DOMAINS:
        labels = gold_of(pairs, domain)
        if learnable(labels, groups) is None:
            rows = np.flatnonzero(labels >= 0).tolist()
            fitted = learner.fit([pairs[row] for row in rows], labels[rows], groups[rows], settings.seed)
            scaled, model = fitted.model
            found[domain] = _folded(scaled, model, fitted.cut)
    if not found:
        raise DeclarationError("no domain has two questions of each class: there is nothing to train a head on")
    return found


def _folded(scaled: Any, model: Any, cut: float) -> DomainHead:
    """Returns weights for raw vectors: w.(x - mean)/spread + b is (w/spread).x + b - w.mean/spread."""
    weights = model.coef_[0] / scaled.spread
    intercept = float(model.intercept_[0] - weights @ scaled.mean)
    rounded = np.array([float(f"{weight:.{DIGITS}g}") for weight in weights])
    return DomainHead(rounded, float(f"{intercept:.{DIGITS}g}"), round(cut, 4))
