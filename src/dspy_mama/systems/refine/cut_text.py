"""What a reply that was cut at the token limit holds of the answer: the text as far as it goes."""

from __future__ import annotations

import json
import re
from typing import Final

from dspy_mama.core.reading import read_text, strip_reasoning

# The form that was asked for, up to the text; a text that only quotes such a form elsewhere is no answer.
_OBJECT: Final = re.compile(r'\A\s*(?:```(?:json)?\s*)?\{\s*"reply"\s*:\s*"')
_SECTION: Final = re.compile(r"\A\s*\[\[ ## reply ## \]\][ \t]*\n?(.*)\Z", re.S)
_SIGNS: Final = re.compile(r'(?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*', re.S)
"""Signs of a JSON text, up to its end or to an escape that was cut."""


def text_of_cut(raw: str) -> tuple[str, bool] | None:
    """Returns the text of a cut reply and whether it breaks off, or None where it holds no text.

    What a reasoning model thinks before it answers is no text.

    Args:
        raw: The reply as it came.
    """
    said, _ = strip_reasoning(raw)
    if section := _SECTION.match(said):
        text = read_text(section.group(1))
        return (text, True) if text else None
    opened = _OBJECT.match(said)
    if opened is None:
        return None
    signs = _SIGNS.match(said, opened.end())
    after = said[signs.end() :] if signs else ""
    closed = after.startswith('"')
    if closed and after[1:].strip(" \t\r\n}`"):
        return None  # a quotation mark within the text, not at its end: what follows would be lost
    text = read_text(_decoded(signs.group() if signs else ""))
    return (text, not closed) if text else None


def _decoded(signs: str) -> str | None:
    try:
        text = json.loads(f'"{signs}"', strict=False)
    except ValueError:
        return None
    return text if isinstance(text, str) else None
