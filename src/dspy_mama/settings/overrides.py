"""How a value is written in an override such as `corpus.path=VALUE`."""

from __future__ import annotations

import re
from typing import Final

_PLAIN: Final = re.compile(r"(\.{1,2}/|/)?[A-Za-z_][\w./:@-]*", re.ASCII)
_OTHER_TYPES: Final = frozenset({"null", "true", "false", "inf", "nan"})
"""What an override takes for something else than text."""
_SPECIAL: Final = re.compile(r'(\\*)("|\$\{|\Z)')
"""A quote, the beginning of an interpolation and the end, with the backslashes in front: only these count twice."""


def literal(value: str | int | None) -> str:
    """Returns a value as an override gives it back, whatever signs it holds; quoted only where it must be."""
    if value is None:
        return "null"
    if isinstance(value, int) or (_PLAIN.fullmatch(value) and value.lower() not in _OTHER_TYPES):
        return str(value)
    escaped = _SPECIAL.sub(lambda found: found[1] * 2 + (f"\\{found[2]}" if found[2] else ""), value)
    return f'"{escaped}"'
