"""Search by words: BM25 over English words and Japanese character pairs."""

from __future__ import annotations

import logging
import re
import unicodedata
from array import array
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from dspy_mama.core.errors import DeclarationError
from dspy_mama.retrieval.embedding import CHARACTER_LIMIT, Vectors

_TOKEN: Final = re.compile(
    r"[0-9a-z\u00df-\u024f]+(?:['.-][0-9a-z\u00df-\u024f]+)*"
    r"|[\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_CJK_FROM: Final = "\u3005"
_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with i my me you your he she his her we our do does can have has had what which who how am",
    )
)
"""English words that say nothing of the subject: Lucene's list, and the pronouns and verbs of questions."""


def tokens_of(text: str) -> list[str]:
    """Returns the tokens of a text: words in lower case without stop words, and pairs of neighbouring CJK letters.

    Japanese has no spaces. Pairs need no dictionary that would have to know the names of diseases, drugs and acts, and
    they are what Lucene's CJKAnalyzer uses; a single letter stays as it is.
    """
    found: list[str] = []
    for word in _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if word[0] < _CJK_FROM:
            if word not in _STOP:
                found.append(word)
        elif len(word) == 1:
            found.append(word)
        else:
            found.extend(word[at : at + 2] for at in range(len(word) - 1))
    return found


class LexicalIndex:
    """BM25 (Lucene's variant, k1 = 1.5, b = 0.75) over a fixed list of texts. Safe to search from several threads."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Counts the texts' tokens.

        Args:
            texts: What is searched, in the order of the scores.

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

    def scores(self, text: str) -> Vectors:
        """Returns the BM25 score of every text, 0 where it shares no token with the query."""
        known = [self._numbers[token] for token in tokens_of(text[:CHARACTER_LIMIT]) if token in self._numbers]
        if not known or self._bm25 is None:
            return np.zeros(self._count, dtype=np.float32)
        return np.asarray(self._bm25.get_scores_from_ids(known), dtype=np.float32)

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
