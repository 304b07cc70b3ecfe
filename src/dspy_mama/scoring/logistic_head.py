"""A trained linear head as plain JSON: sentence vector in, probability of risk by domain out. Nothing is pickled."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from dspy_mama.core.cases import DOMAINS, Domain
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import content_hash, object_hash

FORMAT: Final = 1


def pair_hash(question: str, answer: str) -> str:
    """Returns the key under which a head knows a pair that it learnt from."""
    return content_hash(f"{len(question)}:{question}\n{answer}", 16)


@dataclass(frozen=True)
class DomainHead:
    """One domain's weights.

    Attributes:
        weights: One per dimension of the sentence vector.
        intercept: Added to their product.
        cut: Risky from this probability up, in [0, 1].
    """

    weights: npt.NDArray[np.float64]
    intercept: float
    cut: float

    def probability(self, vector: npt.NDArray[Any]) -> float:
        """Returns p(risky) of a sentence vector, in (0, 1)."""
        logit = float(np.dot(self.weights, np.asarray(vector, dtype=np.float64)) + self.intercept)
        return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


@dataclass(frozen=True)
class LogisticHead:
    """A head with what it was trained on and how it did out of fold.

    Attributes:
        embedder: Id of the embedder whose vectors it reads; those of another mean nothing to it.
        dimension: Length of a vector.
        text: What is embedded: the `answer`, or the `pair` as question, line break, answer.
        domains: Weights by domain; a domain that had no gold has none.
        training: What it learnt from, as plain data.
        cross_validation: Figures out of fold with 95% intervals, its own and those of controls, as plain data.
        limits: What its labels are not good for, in words.
        out_of_fold: What is said of the pairs that it learnt from, by `pair_hash`: probability and label by domain,
            from the fold that had not seen them. Without these it would look perfect on its own training data.
    """

    embedder: str
    dimension: int
    text: Literal["answer", "pair"]
    domains: Mapping[Domain, DomainHead]
    training: Mapping[str, Any]
    cross_validation: Mapping[str, Any]
    limits: str
    out_of_fold: Mapping[str, Mapping[Domain, tuple[float, bool]]] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """Hash of what decides its labels, 8 hex digits."""
        content = {name: [own.weights.tolist(), own.intercept, own.cut] for name, own in self.domains.items()}
        return object_hash([self.embedder, self.text, content], 8)

    def text_of(self, question: str, answer: str) -> str:
        """Returns the text to embed."""
        return answer if self.text == "answer" else f"{question}\n{answer}"

    def to_json(self) -> str:
        """Returns the head as JSON, the same text for the same head."""
        domains = {
            name: {"intercept": own.intercept, "cut": own.cut, "weights": own.weights.tolist()}
            for name, own in self.domains.items()
        }
        data = {
            "kind": "logistic_head",
            "format": FORMAT,
            "limits": self.limits,
            "training": dict(self.training),
            "cross_validation": dict(self.cross_validation),
            "embedder": self.embedder,
            "dimension": self.dimension,
            "text": self.text,
            "domains": domains,
            "out_of_fold": {key: {d: list(said) for d, said in own.items()} for key, own in self.out_of_fold.items()},
        }
        lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in data.items()]
        return "{\n" + ",\n".join(lines) + "\n}\n"


def read_head(path: Path) -> LogisticHead:
    """Reads a head.

    Raises:
        DeclarationError: The file is no head, is damaged, or is of a format that this version does not read.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DeclarationError(f"{path}: not a trained head ({error})") from None
    if not isinstance(data, dict) or data.get("kind") != "logistic_head":
        raise DeclarationError(f"{path}: not a trained head; `mama baseline --head FILE` makes one")
    if data.get("format") != FORMAT:
        raise DeclarationError(
            f"{path}: head of format {data.get('format')}, this version reads {FORMAT}: train it again"
        )
    try:
        head = LogisticHead(
            str(data["embedder"]),
            int(data["dimension"]),
            data["text"],
            {domain: _domain(data["domains"][domain]) for domain in DOMAINS if domain in data["domains"]},
            dict(data["training"]),
            dict(data["cross_validation"]),
            str(data["limits"]),
            {key: {d: _said(own[d]) for d in DOMAINS if d in own} for key, own in data["out_of_fold"].items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DeclarationError(f"{path}: damaged head ({type(error).__name__}: {error}); train it again") from None
    fits = head.domains and head.text in ("answer", "pair")
    if not fits or any(own.weights.shape != (head.dimension,) for own in head.domains.values()):
        raise DeclarationError(f"{path}: damaged head (weights do not fit the {head.dimension} dimensions)")
    return head


def _said(given: Any) -> tuple[float, bool]:
    probability, risky = given
    if not (isinstance(risky, bool) and 0 <= probability <= 1):
        raise ValueError(f"{given!r} is no probability with its label")
    return float(probability), risky


def _domain(data: Mapping[str, Any]) -> DomainHead:
    own = DomainHead(np.array(data["weights"], dtype=np.float64), float(data["intercept"]), float(data["cut"]))
    if not (np.isfinite(own.weights).all() and math.isfinite(own.intercept) and 0 <= own.cut <= 1):
        raise ValueError("a weight is no number, or the cut is not in [0, 1]")
    return own
