"""Question and answer as token ids of an encoder, cut by a stated rule where they are too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HEAD_SHARE: Final = 0.25
"""Of a text that is cut, a quarter of the room goes to its beginning and the rest to its end: head and tail together
beat either alone (Sun et al. 2019, How to Fine-Tune BERT for Text Classification, 5.3.1: 128 + 382 of 510)."""
QUESTION_SHARE: Final = 0.25
"""The question keeps at most a quarter of the room unless the answer leaves more: it is the answer that is judged."""


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """Token ids of a pair.

    Attributes:
        ids: `[CLS] question [SEP] answer [SEP]`, or without the question `[CLS] answer [SEP]`.
        segments: 0 for the first segment, 1 for the second.
        cut: Tokens that were left out.
    """

    ids: tuple[int, ...]
    segments: tuple[int, ...]
    cut: int


def head_and_tail(tokens: Sequence[int], room: int) -> tuple[int, ...]:
    """Returns tokens that fit: all of them, or a quarter of the room from the beginning and the rest from the end."""
    if len(tokens) <= room:
        return tuple(tokens)
    head = int(room * HEAD_SHARE)
    return (*tokens[:head], *tokens[len(tokens) - (room - head) :])


def encode_pair(
    question: Sequence[int] | None, answer: Sequence[int], *, first: int, between: int, limit: int
) -> EncodedPair:
    """Joins token ids of a question and an answer.

    Args:
        question: Token ids of the question without special ones; None = the answer alone.
        answer: Token ids of the answer.
        first: Id of the token that stands first (`[CLS]`).
        between: Id of the token that ends a segment (`[SEP]`).
        limit: Tokens at most, special ones included.
    """
    if question is None:
        kept = head_and_tail(answer, limit - 2)
        ids: tuple[int, ...] = (first, *kept, between)
        return EncodedPair(ids, (0,) * len(ids), len(answer) - len(kept))
    room = limit - 3
    asked = head_and_tail(question, max(int(room * QUESTION_SHARE), room - len(answer)))
    kept = head_and_tail(answer, room - len(asked))
    one, two = (first, *asked, between), (*kept, between)
    cut = len(question) - len(asked) + len(answer) - len(kept)
    return EncodedPair((*one, *two), (0,) * len(one) + (1,) * len(two), cut)
