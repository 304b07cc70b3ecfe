"""How much evidence an LM gets: an estimate of tokens, and cuts that a reader can follow. Pure."""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from dspy_mama.core.cases import Passage
from dspy_mama.retrieval.chunking import count_cjk
from dspy_mama.retrieval.sentences import joins_left, sentence_ends

CUT_MARK: Final = " [...]"
_CJK_PER_TOKEN: Final = 1.5
_OTHER_PER_TOKEN: Final = 4.0
"""Characters a token: usual values of current tokenizers; small English models need more tokens for Japanese."""
_MARK_TOKENS: Final = len(CUT_MARK) / _OTHER_PER_TOKEN
_PER_DOCUMENT: Final = 2
"""Passages of one document: neighbours overlap by a third, and other documents tell more."""


def estimate_tokens(text: str) -> int:
    """Returns about how many tokens a text takes, rounded up."""
    return math.ceil(_estimate(text))


@lru_cache(maxsize=8192)
def _estimate(text: str) -> float:
    """Returns the estimate; kept, since every search weighs the same passages."""
    return _weigh(text)


def _weigh(text: str) -> float:
    cjk = count_cjk(text)
    return cjk / _CJK_PER_TOKEN + (len(text) - cjk) / _OTHER_PER_TOKEN


def cut_to_tokens(text: str, budget: int, *, whole_sentences: bool = False) -> str:
    """Returns the text, or its beginning and ` [...]` within an estimated budget.

    It is cut after the last sentence that fits, else (unless `whole_sentences`) between two words; a Japanese text
    between two characters.

    Args:
        text: The text.
        budget: Tokens, the mark included.
        whole_sentences: Return "" rather than a part of a sentence.
    """
    if _estimate(text) <= budget:
        return text
    limit = _characters_within(text, budget - _MARK_TOKENS)
    ends = _ends(text)
    fitting = bisect_right(ends, limit)
    if fitting:
        return text[: ends[fitting - 1]].rstrip() + CUT_MARK
    if whole_sentences:
        return ""
    end = _word_end(text, limit)
    return text[:end].rstrip() + CUT_MARK if end else ""


def within_budget(passages: Iterable[Passage], budget: int, limit: int) -> tuple[Passage, ...]:
    """Returns the first passages that fit, at most two of a document; the last may be cut at a sentence end.

    The first passage is always there, cut inside a sentence if need be: found evidence is not dropped in silence.

    Args:
        passages: Best first.
        budget: Tokens for all texts together.
        limit: Passages at most.
    """
    chosen: list[Passage] = []
    seen: dict[str, int] = {}
    left = budget
    for passage in passages:
        if len(chosen) == limit:
            break
        if seen.get(passage.document, 0) == _PER_DOCUMENT:
            continue
        text = cut_to_tokens(passage.text, left, whole_sentences=bool(chosen))
        if not chosen and not text:
            text = CUT_MARK.strip()  # not even a word fits
        if not text:
            break
        chosen.append(passage if text is passage.text else dataclasses.replace(passage, text=text))
        if text is not passage.text:
            break
        seen[passage.document] = seen.get(passage.document, 0) + 1
        left -= estimate_tokens(text)
    return tuple(chosen)


@lru_cache(maxsize=2048)
def _ends(text: str) -> tuple[int, ...]:
    """Returns the sentence ends; kept, since the same passages are cut again and again."""
    return tuple(sentence_ends(text))


def _characters_within(text: str, tokens: float) -> int:
    """Returns the length of the longest beginning within an estimate, found by halving what is not yet weighed."""
    low, high, left = 0, len(text), tokens
    while low < high:
        middle = (low + high + 1) // 2
        weight = _weigh(text[low:middle])
        if weight <= left:
            low, left = middle, left - weight
        else:
            high = middle - 1
    return low


def _word_end(text: str, limit: int) -> int:
    """Returns the last place in `0 <= offset <= limit` that lies in no word, 0 where there is none."""
    for offset in range(min(limit, len(text)), 0, -1):
        left, right = text[offset - 1], text[offset : offset + 1]
        joined = left.isalnum() and right.isalnum() and not (count_cjk(left) or count_cjk(right))
        if not joined and not (right and joins_left(text, offset)):
            return offset
    return 0
