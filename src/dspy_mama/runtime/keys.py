"""By which key a pair is known in a run."""

from __future__ import annotations

from typing import Final

from dspy_mama.core.cases import QAPair
from dspy_mama.core.ids import object_hash

_LENGTH: Final = 16
"""64 bits: among a million pairs two share a key once in 40 million runs."""


def pair_key(pair: QAPair, repeat: int = 0) -> str:
    """Returns the hash of a pair's id, question and answer and of which repeat it is.

    Args:
        pair: The pair; a changed text gives another key, so that a resumed run audits it again.
        repeat: 0-based index where the same pair is audited several times.
    """
    content = {"id": pair.id, "question": pair.question, "answer": pair.answer, "repeat": repeat}
    return object_hash(content, _LENGTH)
