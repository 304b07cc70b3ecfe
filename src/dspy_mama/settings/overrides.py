"""How a value is written in an override such as `corpus.path=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_PLAIN: Final = re.compile(r"(\.{1,2}/|/)?[A-Za-z_][\w./:@-]*", re.ASCII)
_PLAIN_INSIDE: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
"""The same inside a list or mapping, where `:` and more have a meaning."""
_OTHER_TYPES: Final = frozenset({"null", "true", "false", "inf", "nan"})
"""What an override takes for something else than text."""
_SPECIAL: Final = re.compile(r'(\\*)("|\$\{|\Z)')
"""A quote, the beginning of an interpolation and the end, with the backslashes in front: only these count twice."""


def literal(value: Any) -> str:
    """Returns a value as an override gives it back, whatever signs it holds; quoted only where it must be.

    Args:
        value: Text, number, bool or None, or a list, tuple or mapping of such; keys of a mapping are plain names.
    """
    return _literal(value, _PLAIN)


def _literal(value: Any, plain: re.Pattern[str]) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_literal(item, _PLAIN_INSIDE)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(_literal(item, _PLAIN_INSIDE) for item in value)}]"
    if plain.fullmatch(value) and value.lower() not in _OTHER_TYPES:
        return str(value)
    escaped = _SPECIAL.sub(lambda found: found[1] * 2 + (f"\\{found[2]}" if found[2] else ""), value)
    return f'"{escaped}"'
