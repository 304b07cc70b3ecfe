"""What changed between two versions of a text, word by word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

Change = Literal["same", "gone", "new"]

# A word with the blanks after it; signs of scripts without blanks are words by themselves.
_WORDS: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uff66-\uff9f]\s*|[^\s\u3040-\u30ff\u3400-\u9fff]+\s*|\s+")
_LONG: Final = 3000
"""Words from which frequent ones are passed over when matching: exact matching would take seconds."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text.

    Attributes:
        change: `same` in both versions, `gone` from the earlier, or `new` in the later.
        text: The stretch, blanks included.
    """

    change: Change
    text: str


def word_diff(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Returns the earlier text with what is gone marked, and the later with what is new marked.

    Joined, the pieces are the texts unchanged. Blanks alone are no change.
    """
    left, right = _WORDS.findall(before), _WORDS.findall(after)
    first, second = ([word.rstrip() for word in words] for words in (left, right))
    matcher = SequenceMatcher(None, first, second, autojunk=max(len(left), len(right)) > _LONG)
    old: list[Piece] = []
    new: list[Piece] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        same = kind == "equal"
        _add(old, "same" if same else "gone", left[a:b])
        _add(new, "same" if same else "new", right[c:d])
    return old, new


def _add(pieces: list[Piece], change: Change, words: list[str]) -> None:
    if words:
        pieces.append(Piece(change, "".join(words)))
