"""An answer's claims, sentence by sentence, to search for each by itself. Pure."""

from __future__ import annotations

from typing import Final

from dspy_mama.retrieval.chunking import count_cjk
from dspy_mama.retrieval.sentences import sentence_ends

CLAIM_LIMIT: Final = 8
"""Claims of one answer: every claim costs one embedding."""
_SHORTEST: Final = 24
"""Width below which a sentence ("Yes, of course.") joins the next; a CJK letter counts as two."""


def split_claims(answer: str, limit: int = CLAIM_LIMIT) -> tuple[str, ...]:
    """Returns the sentences of an answer as claims; a short one joins its neighbour.

    Args:
        answer: Any text.
        limit: Claims at most; of a longer answer, neighbouring sentences share a claim.
    """
    claims: list[str] = []
    start, held = 0, ""
    for end in sentence_ends(answer):
        held = f"{held} {' '.join(answer[start:end].split())}".strip()
        start = end
        if _width(held) >= _SHORTEST:
            claims.append(held)
            held = ""
    if held:
        claims = [*claims[:-1], f"{claims[-1]} {held}"] if claims else [held]
    per = -(-len(claims) // limit)
    return tuple(" ".join(claims[at : at + per]) for at in range(0, len(claims), per or 1))


def _width(text: str) -> int:
    return len(text) + count_cjk(text)
