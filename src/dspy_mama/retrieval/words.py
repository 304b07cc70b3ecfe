"""Texts as the words that a search by words compares. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_CJK: Final = r"\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN: Final = re.compile(rf"[0-9a-z\u00df-\u024f]+(?:['.-][0-9a-z\u00df-\u024f]+)*|[{_CJK}]+")
_HAS_CJK: Final = re.compile(f"[{_CJK}]")
_CJK_FROM: Final = "\u3005"
_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with i my me you your he she his her we our do does can have has had what which who how am",
    )
)
"""English words that say nothing of the subject: Lucene's list, and the pronouns and verbs of questions."""


def folded(text: str) -> str:
    """Returns a text without differences of width and case."""
    return unicodedata.normalize("NFKC", text).casefold()


def has_cjk(text: str) -> bool:
    """Tells whether a text holds a Chinese, Japanese or Korean letter."""
    return _HAS_CJK.search(text) is not None


def tokens_of(text: str) -> list[str]:
    """Returns the tokens of a text: words in lower case without stop words, and pairs of neighbouring CJK letters.

    Japanese has no spaces. Pairs need no dictionary that would have to know the names of diseases, drugs and acts, and
    they are what Lucene's CJKAnalyzer uses; a single letter stays as it is.
    """
    found: list[str] = []
    for word in _TOKEN.findall(folded(text)):
        if word[0] < _CJK_FROM:
            if word not in _STOP:
                found.append(word)
        elif len(word) == 1:
            found.append(word)
        else:
            found.extend(word[at : at + 2] for at in range(len(word) - 1))
    return found


def singular(word: str) -> str:
    """Returns an English word without the s of its plural (the S-stemmer, Harman 1991)."""
    if len(word) < 4 or not word.endswith("s"):
        return word
    if word.endswith("ies") and word[-4] not in "ae":
        return f"{word[:-3]}y"
    if word.endswith("es") and word[-3] not in "aeo":
        return word[:-1]
    return word if word.endswith(("us", "ss")) else word[:-1]
