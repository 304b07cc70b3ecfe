"""Search by words: BM25 over English words and Japanese character pairs, across languages with a glossary."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dspy_mama.core.errors import DeclarationError
from dspy_mama.retrieval.embedding import CHARACTER_LIMIT, Vectors
from dspy_mama.retrieval.glossary import Glossary
from dspy_mama.retrieval.words import tokens_of

_Postings = tuple[npt.NDArray[np.intp], Vectors]
"""Rows, and what each gains."""


class LexicalIndex:
    """BM25 (Lucene's variant, k1 = 1.5, b = 0.75) over a fixed list of texts. Safe to search from several threads.

    Attributes:
        glossary: What leads words of a query to texts in other languages.
    """

    def __init__(self, texts: Iterable[str], languages: Sequence[str] = (), glossary: Glossary | None = None) -> None:
        """Counts the texts' tokens.

        Args:
            texts: What is searched, in the order of the scores.
            languages: Their languages (ISO 639-1), in the same order; only a glossary needs them.
            glossary: Leads words of a query to texts in other languages; None = words find themselves alone.

        Raises:
            DeclarationError: The package `bm25s` is not installed.
        """
        self._numbers: dict[str, int] = {}
        # Numbers in arrays: as lists of strings, 100,000 chunks of 1,500 characters take several gigabytes.
        rows = [self._numbered(text) for text in texts]
        self._count = len(rows)
        self._bm25: Any = None
        if any(rows):
            self._bm25 = _bm25s().BM25(k1=1.5, b=0.75, method="lucene")
            vocabulary = {**self._numbers, "": len(self._numbers)}
            self._bm25.index((rows, vocabulary), create_empty_token=False, show_progress=False)
        self.glossary = glossary
        spoken = np.asarray(languages)
        self._in_language = {name: spoken == name for name in sorted(set(languages))} if glossary else {}
        self._gains: dict[tuple[int, str], _Postings] = {}

    def scores(self, text: str) -> Vectors:
        """Returns the score of every text, 0 where it shares neither token nor, across languages, concept.

        A concept counts in a language as the best of its terms does there, so that a thing with many names counts
        once. It counts only for texts in languages other than that in which the query names it: there, words do.
        """
        asked = text[:CHARACTER_LIMIT]
        found = self._of_tokens(asked)
        if self.glossary is None or self._bm25 is None:
            return found
        for concept, said_in in self.glossary.find(asked).items():
            for language in self._in_language.keys() - said_in:
                rows, gains = self._gains_of(concept, language)
                found[rows] += gains
        return found

    def _of_tokens(self, text: str) -> Vectors:
        known = [self._numbers[token] for token in tokens_of(text) if token in self._numbers]
        if not known or self._bm25 is None:
            return np.zeros(self._count, dtype=np.float32)
        return np.asarray(self._bm25.get_scores_from_ids(known), dtype=np.float32)

    def _gains_of(self, concept: int, language: str) -> _Postings:
        """Returns the texts of a language that name a concept, with their scores; worked out once."""
        key = (concept, language)
        if key not in self._gains:
            assert self.glossary is not None
            terms = self.glossary.concepts[concept].get(language, ())
            best = np.zeros(self._count, dtype=np.float32)
            for term in terms:
                np.maximum(best, self._of_tokens(term), out=best)
            rows = np.flatnonzero(np.where(self._in_language[language], best, 0))
            self._gains[key] = rows, best[rows]
        return self._gains[key]

    def _numbered(self, text: str) -> array[int]:
        numbers = self._numbers
        return array("i", [numbers.setdefault(token, len(numbers)) for token in tokens_of(text)])


def _bm25s() -> Any:
    try:
        import bm25s  # type: ignore[import-untyped]
    except ImportError:
        raise DeclarationError(
            "retriever.search=lexical and hybrid need the package bm25s: pip install bm25s, or set "
            "retriever.search=dense"
        ) from None
    # It sets its own logger to DEBUG when it is imported.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s
