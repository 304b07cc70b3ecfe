"""From settings to the classifier that they name."""

from __future__ import annotations

from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ports import Embedder
from dspy_mama.settings import SupervisedSettings
from dspy_mama.systems.supervised.features import AnswerLength, Features, SentenceVectors, Words
from dspy_mama.systems.supervised.learners import Learner, LogisticLearner, MajorityLearner


def make_learner(settings: SupervisedSettings, embedder: Embedder | None = None) -> Learner:
    """Returns the classifier that the settings name.

    Args:
        settings: The baseline.
        embedder: What makes sentence vectors, for `embedding`.

    Raises:
        DeclarationError: An embedder is needed and not given, or a package or a model is missing.
    """
    reads = {"answer": "answer", "pair": "question+answer", "separate": "question | answer"}[settings.text]
    match settings.name:
        case "majority":
            return MajorityLearner()
        case "bert":
            from dspy_mama.systems.supervised.bert import BertLearner

            return BertLearner(settings.bert, answer_only=settings.text == "answer", cut=settings.cut)
        case "length":
            return _logistic("answer length", AnswerLength(), settings)
        case "tfidf":
            return _logistic(f"tf-idf of {reads}", Words(settings.text), settings)
        case "embedding":
            if embedder is None:
                raise DeclarationError("baseline=embedding needs an embedder: give make_embedder(EmbedderSettings())")
            return _logistic(f"{embedder.id} of {reads}", SentenceVectors(embedder, settings.text), settings)


def _logistic(what: str, features: Features, settings: SupervisedSettings) -> LogisticLearner:
    options: dict[str, Any] = {"strengths": settings.strengths, "inner_folds": settings.inner_folds}
    return LogisticLearner(f"logistic regression on {what}", features, cut=settings.cut, **options)
