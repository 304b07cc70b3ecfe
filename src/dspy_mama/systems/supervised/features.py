"""What a linear classifier sees of a pair. What is learnt from pairs is learnt in `fit`, on training pairs alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from dspy_mama.core.cases import QAPair
from dspy_mama.core.ports import Embedder

Text = Literal["answer", "pair", "separate"]
Matrix = Any
"""A numpy array or a scipy sparse matrix of shape (pairs, features)."""

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"\w+")
_CHARACTERS = (1, 2, 3)


class Features(Protocol):
    """Turns pairs into numbers."""

    def fit(self, pairs: Sequence[QAPair]) -> Transform:
        """Learns from training pairs and returns what turns any pairs into numbers."""


class Transform(Protocol):
    """Fitted features."""

    def __call__(self, pairs: Sequence[QAPair]) -> Matrix:
        """Returns the matrix of some pairs."""


def texts_of(pair: QAPair, text: Text) -> tuple[str, ...]:
    """Returns what is read of a pair: one text, or question and answer as two."""
    if text == "separate":
        return pair.question, pair.answer
    return (pair.answer if text == "answer" else f"{pair.question}\n{pair.answer}",)


def is_cjk(text: str) -> bool:
    """Tells whether a text is written without blanks between words, as Japanese is (a fifth of its signs say so)."""
    return len(_CJK.findall(text)) * 5 > len(text)


class SentenceVectors:
    """Sentence vectors, standardised; with `separate`, those of question and answer side by side."""

    def __init__(self, embedder: Embedder, text: Text) -> None:
        self._embedder, self._text = embedder, text
        self._known: dict[str, npt.NDArray[np.float32]] = {}

    def raw(self, pairs: Sequence[QAPair]) -> npt.NDArray[np.float64]:
        """Returns the vectors as the embedder gives them; a text is embedded once."""
        wanted = [texts_of(pair, self._text) for pair in pairs]
        missing = list(dict.fromkeys(t for texts in wanted for t in texts if t not in self._known))
        if missing:
            self._known |= dict(zip(missing, self._embedder.embed_documents(missing), strict=True))
        return np.array([np.concatenate([self._known[t] for t in texts]) for texts in wanted], dtype=np.float64)

    def fit(self, pairs: Sequence[QAPair]) -> Transform:
        """Learns mean and spread of each dimension."""
        return _standardised(self.raw, pairs)


class Words:
    """Tf-idf of words and word pairs, of one to three characters where a text is Japanese or Chinese."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def tokens(self, pair: QAPair) -> list[str]:
        """Returns the terms of a pair; with `separate`, a term of the question is another than one of the answer."""
        parts = texts_of(pair, self._text)
        marks = ("q:", "a:") if len(parts) == 2 else ("",)
        return [mark + term for mark, part in zip(marks, parts, strict=True) for term in _terms(part)]

    def fit(self, pairs: Sequence[QAPair]) -> Transform:
        """Learns the vocabulary and how rare each term is."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectoriser: Any = TfidfVectorizer(analyzer=self.tokens, sublinear_tf=True)
        vectoriser.fit(pairs)
        return lambda rows: vectoriser.transform(rows)


@lru_cache(maxsize=4096)
def _terms(text: str) -> tuple[str, ...]:
    folded = text.casefold()
    if is_cjk(folded):
        solid = "".join(folded.split())
        return tuple(solid[at : at + n] for n in _CHARACTERS for at in range(len(solid) - n + 1))
    words = _WORD.findall(folded)
    return (*words, *(f"{one} {two}" for one, two in pairwise(words)))


class AnswerLength:
    """Logarithm of the answer's characters, by script: a control for what a classifier may owe to length alone."""

    def raw(self, pairs: Sequence[QAPair]) -> npt.NDArray[np.float64]:
        """Returns the script, and the length in the column of its script."""
        length = np.log1p([len(pair.answer) for pair in pairs])
        cjk = np.array([is_cjk(pair.answer) for pair in pairs], dtype=np.float64)
        return np.column_stack([cjk, length * cjk, length * (1 - cjk)])

    def fit(self, pairs: Sequence[QAPair]) -> Transform:
        """Learns mean and spread."""
        return _standardised(self.raw, pairs)


class Standardised:
    """Numbers of pairs less the training pairs' mean, over their spread."""

    def __init__(self, raw: Any, mean: npt.NDArray[np.float64], spread: npt.NDArray[np.float64]) -> None:
        self._raw, self.mean, self.spread = raw, mean, spread

    def __call__(self, pairs: Sequence[QAPair]) -> Matrix:
        """Returns the matrix of some pairs."""
        return (self._raw(pairs) - self.mean) / self.spread


def _standardised(raw: Any, pairs: Sequence[QAPair]) -> Standardised:
    values = raw(pairs)
    spread = values.std(axis=0)
    return Standardised(raw, values.mean(axis=0), np.where(spread > 1e-12, spread, 1.0))
