"""What settings dataclasses share: unknown fields are refused, and names that prompts show are one line."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict

STRICT: Final = ConfigDict(extra="forbid")

LONGEST_NAME: Final = 80
"""Characters of a name that a prompt shows: a longer one is a text, and texts belong into Signatures."""


def one_line(name: str) -> str:
    """Returns a name in one line, its blanks and line breaks as single spaces.

    Raises:
        ValueError: It is empty, too long, or holds a control or invisible character.
    """
    line = " ".join(name.split())
    if not line:
        raise ValueError("an empty name; leave it out, or give it a word")
    # Cc, Cf, Cs: control, invisible and bidirectional signs, halves of surrogates. A prompt would drop them in silence.
    if bad := next((sign for sign in line if unicodedata.category(sign) in ("Cc", "Cf", "Cs")), None):
        raise ValueError(f"{line!a} holds the control or invisible character U+{ord(bad):04X}; take it out")
    if len(line) > LONGEST_NAME:
        raise ValueError(f"{line[:30]!r}... has {len(line)} characters; a name has at most {LONGEST_NAME}")
    return line


OneLine = Annotated[str, AfterValidator(one_line)]
"""A name that stands in prompts: it cannot pass for another line of them."""
