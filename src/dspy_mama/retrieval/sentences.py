"""Where sentences end in English and Japanese text, and where text may be cut when none does. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_CLOSERS: Final = r"[\"'’”»)\]」』）】〕〉》]*"
_CANDIDATE: Final = re.compile(
    rf"[.!?…]+{_CLOSERS}(?=\s|$)"  # Latin: an end only before white space
    rf"|[。｡！？]+[!?]*{_CLOSERS}"  # Japanese: no white space follows
    rf"|．(?![0-9０-９])[」』）】]*"  # the full-width stop of scientific Japanese, not a decimal point
)
_LINE_ITEM: Final = re.compile(
    r"\n(?=[ \t]*(?:[-*+•・]\s|\d+[.)]\s|[（(]?[0-9０-９一二三四五六七八九十]+[)）．]|\||#{1,6}\s))"
)
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\n\s*")
_LIST_NUMBER: Final = re.compile(r"(?:^|\n)[ \t]*(?:\d+|[A-Za-z]|[ivxIVX]+)$")
_DOTTED: Final = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]$")
_LAST_WORD: Final = re.compile(r"[^\s(\[\"'“‘]+$")
_QUOTED_ON: Final = frozenset("とのはがをにもやでっ、，")
"""What follows a closing quote inside a running Japanese sentence (「…。」と言った)."""

_ALWAYS: Final = re.compile(
    r"dr|prof|mr|mrs|ms|mx|jr|sr|st|vs|cf|al|e\.g|i\.e|approx|ca|viz|dept|univ|inc|ltd|co|corp|gov|rev|hon|gen"
)
"""Abbreviations after which a sentence goes on."""
_BEFORE_NUMBER: Final = re.compile(r"nos?|arts?|secs?|paras?|par|pp?|figs?|vol|ch|chap|cl|reg|eq|refs?|tab|min|max")
"""Abbreviations that do not end a sentence where a number follows."""


def _is_latin_end(text: str, start: int, end: int) -> bool:
    rest = text[end : end + 40].lstrip()
    if rest[:1].islower():
        return False
    if text[start] != ".":
        return True
    before = text[max(0, start - 60) : start]
    if _LIST_NUMBER.search(before):
        return False
    found = _LAST_WORD.search(before)
    word = found.group().lower() if found else ""
    if _ALWAYS.fullmatch(word) or _DOTTED.search(before):
        return False
    if _BEFORE_NUMBER.fullmatch(word) and rest[:1].isdigit():
        return False
    return not _is_initial(before)


def _is_initial(before: str) -> bool:
    """Tells `John F.` (an initial) from `hepatitis B.` (the end of a sentence)."""
    words = before.split()
    if not words or len(words[-1]) != 1 or not words[-1].isupper():
        return False
    return len(words) > 1 and words[-2][0].isupper()


def _is_end(text: str, start: int, end: int) -> bool:
    if text[start] in ".!?…":
        return _is_latin_end(text, start, end)
    closed = text[end - 1] in "」』）】〕”’"
    return not (closed and text[end : end + 1] in _QUOTED_ON and end < len(text))


def sentence_ends(text: str) -> list[int]:
    """Returns the offsets at which a sentence, a list item or a paragraph ends, ascending; the last is `len(text)`.

    An offset lies after the white space that follows the sentence, so that slices between offsets cover the text.
    """
    ends = {len(text)} if text else set()
    for found in _CANDIDATE.finditer(text):
        if _is_end(text, found.start(), found.end()):
            ends.add(past_space(text, found.end()))
    ends.update(found.end() for found in _BLANK_LINE.finditer(text))
    ends.update(found.end() for found in _LINE_ITEM.finditer(text))
    return sorted(ends)


def paragraph_ends(text: str) -> list[int]:
    """Returns the offsets just after each blank line, ascending."""
    return [found.end() for found in _BLANK_LINE.finditer(text)]


def past_space(text: str, offset: int) -> int:
    """Returns the offset of the next character that is no white space, or `len(text)`."""
    while offset < len(text) and text[offset].isspace():
        offset += 1
    return offset


def joins_left(text: str, offset: int) -> bool:
    """Tells whether the character at an offset belongs to the one before it (accents, emoji sequences, flags)."""
    here, before = text[offset], text[offset - 1]
    if unicodedata.category(here) in ("Mn", "Mc", "Me") or here == "\u200d" or before == "\u200d":
        return True
    if here in "ﾞﾟ" or "\U0001f3fb" <= here <= "\U0001f3ff":  # half-width voicing marks, skin tones
        return True
    if "\U0001f1e6" <= here <= "\U0001f1ff":
        run = offset
        while run > 0 and "\U0001f1e6" <= text[run - 1] <= "\U0001f1ff":
            run -= 1
        return (offset - run) % 2 == 1
    return here == "\n" and before == "\r"


def soft_end(text: str, start: int, limit: int) -> int:
    """Returns where to cut text that has no sentence end in `start < offset <= limit`.

    It prefers the last white space or comma in the second half, then any place between two characters as a reader
    sees them. The result is greater than `start` and at most `limit`.
    """
    if limit >= len(text):
        return len(text)
    for offset in range(limit, start + (limit - start) // 2, -1):
        if text[offset - 1].isspace() or text[offset - 1] in "、，,;；:：":
            return offset
    for offset in range(limit, start, -1):
        if not joins_left(text, offset):
            return offset
    return limit
