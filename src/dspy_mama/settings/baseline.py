"""Supervised baselines: which classifier, on which text, and how it is cross-validated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from dspy_mama.settings.strict import STRICT

SupervisedName = Literal["embedding", "tfidf", "length", "majority", "bert"]
Positive = Annotated[float, Field(gt=0)]


@dataclass(frozen=True, config=STRICT)
class BertSettings:
    """Fine-tuning of a BERT-like encoder.

    Attributes:
        model: Name at the model hub, or a local folder; its weights must be safetensors.
        revision: Revision at the hub, such as a branch that holds safetensors; None = the main one.
        offline: Read local files alone.
        learning_rates: Learning rates to choose from on the inner split (Devlin et al. 2019, A.3).
        epochs: At most so many epochs, 1 to 100.
        patience: Epochs without a better inner loss before training stops, 1 to 100.
        batch: Pairs per step, 1 to 256.
        max_tokens: Tokens of question and answer together, special ones included, 16 to 8192.
        inner_share: Share of the training pairs held out for early stopping and the learning rate, in (0, 0.5].
    """

    model: str = "bert-base-uncased"
    revision: str | None = None
    offline: bool = False
    learning_rates: tuple[Positive, ...] = (5e-5, 3e-5, 2e-5)
    epochs: int = Field(default=10, ge=1, le=100)
    patience: int = Field(default=2, ge=1, le=100)
    batch: int = Field(default=16, ge=1, le=256)
    max_tokens: int = Field(default=512, ge=16, le=8192)
    inner_share: float = Field(default=0.2, gt=0, le=0.5)

    def __post_init__(self) -> None:
        """Refuses a choice among nothing."""
        if not self.learning_rates or not self.model.strip():
            raise ValueError("name a model and at least one learning rate")


@dataclass(frozen=True, config=STRICT)
class SupervisedSettings:
    """A classifier that learns from gold labels, judged out of fold.

    Attributes:
        name: `embedding` (sentence vectors + logistic regression), `tfidf` (character n-grams for Japanese, words
            otherwise, + logistic regression), `length` (characters of the answer alone: a control), `majority` (the
            share of risky pairs, for every pair: a control), or `bert` (fine-tuned).
        text: What it reads: the `answer` alone, the `pair` as one text, or question and answer `separate` (two
            vectors, two vocabularies). `length` always reads the answer, `bert` reads two segments for both of the
            latter.
        folds: Outer folds, 2 to 20; fewer where a domain has fewer questions of a class.
        inner_folds: Folds inside each training part that choose the regularisation, 2 to 20.
        strengths: Inverse regularisations C to choose from.
        cut: Where a probability becomes a label: `half` = 0.5; `fitted` = the cut with the best macro-F1 on the
            inner folds (of `bert`: on the inner split).
        seed: Seed of the folds and of training.
        bert: Fine-tuning.
    """

    name: SupervisedName = "embedding"
    text: Literal["answer", "pair", "separate"] = "pair"
    folds: int = Field(default=5, ge=2, le=20)
    inner_folds: int = Field(default=4, ge=2, le=20)
    strengths: tuple[Positive, ...] = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)
    cut: Literal["half", "fitted"] = "fitted"
    seed: int = Field(default=0, ge=0, lt=2**31)
    bert: BertSettings = Field(default_factory=BertSettings)

    def __post_init__(self) -> None:
        """Refuses a choice among nothing."""
        if not self.strengths:
            raise ValueError("strengths: name at least one C")
