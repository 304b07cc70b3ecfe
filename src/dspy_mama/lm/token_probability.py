"""Reads a label's probability at its own token: p(true) / (p(true) + p(false)), in the same call."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple


class TokenScore(NamedTuple):
    """One token of a reply with its alternatives.

    Attributes:
        token: Text of the token.
        logprob: Natural logarithm of its probability.
        top: Alternatives at this place, as (text, log probability).
    """

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...]


NOT_GIVEN = -1000.0
"""Servers write -9999 or so for a probability that they do not report; no real one is that small."""


def _side(token: str) -> bool | None:
    """Tells which label a token begins: ` true`, `True` and `tr` are True; an ambiguous or other token is None."""
    text = token.strip().strip('"').casefold()
    if text and "true".startswith(text[:4]) and text[:4] == "true"[: len(text[:4])]:
        return True
    if text and text[:5] == "false"[: len(text[:5])]:
        return False
    return None


def is_label_piece(token: str) -> bool:
    """Tells whether a token could be, or begin, the value of a boolean field."""
    return _side(token) is not None


def _place(tokens: Sequence[TokenScore], name: str) -> int | None:
    """Returns the index of the token at which the value of the last `"name":` begins."""
    text = "".join(score.token for score in tokens)
    found = list(re.finditer(rf'"{re.escape(name)}"\s*:\s*"?(?=[tTfF])', text))
    if not found:
        return None
    target, offset = found[-1].end(), 0
    for index, score in enumerate(tokens):
        offset += len(score.token)
        if offset > target:
            return index
    return None


def label_probability(tokens: Sequence[TokenScore], name: str) -> float | None:
    """Returns the probability that the boolean field is true.

    Log probabilities come from before any grammar, so true and false do not sum to one: the two are renormalised.
    A side that is not among the alternatives is less likely than the least likely of them; that bound stands in for
    it, so that the result is never an unearned 0 or 1.

    Args:
        tokens: The reply's tokens, in order.
        name: Field name of the label.

    Returns:
        A probability in (0, 1), or None where the label's token is not there or carries no alternatives.
    """
    index = _place(tokens, name)
    if index is None:
        return None
    score = tokens[index]
    seen = {text: logprob for text, logprob in score.top if NOT_GIVEN < logprob < math.inf}
    if NOT_GIVEN < score.logprob < math.inf:
        seen.setdefault(score.token, score.logprob)
    mass = {True: 0.0, False: 0.0}
    for text, logprob in seen.items():
        side = _side(text)
        if side is not None:
            mass[side] += math.exp(logprob)
    if not seen or mass[True] + mass[False] == 0 or len(seen) < 2:
        return None
    floor = math.exp(min(seen.values()))
    true, false = (mass[side] or min(floor, mass[not side]) for side in (True, False))
    return true / (true + false)
