"""A conversation as text, so that no turn in it can pass for another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dspy_mama.core.chat_request import ChatTurn

NOTHING_BEFORE: Final = "(nothing)"
"""What stands in a prompt where the question opens the conversation."""


def conversation_of(turns: Sequence[ChatTurn]) -> str:
    """Returns the turns before a question, one a line; further lines of a turn are indented."""
    return "\n".join(f"{turn.speaker}: {_indented(turn.text)}" for turn in turns) or NOTHING_BEFORE


def in_context(question: str, turns: Sequence[ChatTurn]) -> str:
    """Returns a question with what was said before it, for those who are shown a question alone."""
    return f"{conversation_of(turns)}\npatient: {_indented(question)}" if turns else question


def _indented(text: str) -> str:
    return "\n    ".join(text.splitlines()) or text
