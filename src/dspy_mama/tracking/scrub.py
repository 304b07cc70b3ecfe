"""Keys never reach a record, a manifest or a tracking store."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

REDACTED: Final = "[redacted]"

_MIN_SECRET: Final = 8
"""Shorter values (`true`, `x`, `dummy`) are placeholders; to blot them out would spoil ordinary text."""

_SECRET_NAME = re.compile(
    r"API_?KEY|ACCESS_KEY|(^|_)KEY$|SECRET|PASSW(OR)?D|CREDENTIALS?$|TOKEN(?!S|IZ)", re.IGNORECASE
)

_SECRET_FIELD = re.compile(
    r"(x-)?api[_-]?key|(proxy-)?authorization|(access|auth|bearer|refresh|id)[_-]token|(client[_-])?secret|password",
    re.IGNORECASE,
)

# The look-behind keeps ordinary words such as `risk-assessment-of-the-answer` whole.
_PATTERNS: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{12,}", REDACTED),
        (r"(?<![A-Za-z0-9])(hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|AIza[0-9A-Za-z_-]{30,})", REDACTED),
        (r"(?<![A-Za-z0-9])(AKIA[0-9A-Z]{16}|xox[abp]-[A-Za-z0-9-]{10,})", REDACTED),
        (
            r"(?i)((?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?)(?:(?:bearer|basic|token)\s+)?[^\s'\",;}]+",
            rf"\1{REDACTED}",
        ),
        (r"(?i)\bbearer\s+(?=[^\s'\"]*[0-9])[A-Za-z0-9._~+/=-]{12,}", f"Bearer {REDACTED}"),
        (r"(?i)((?:x-)?api[_-]?key['\"]?\s*[:=]\s*['\"]?)[^\s'\",;}&]{6,}", rf"\1{REDACTED}"),
        (r"(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@:]*:[^\s/@]+@", rf"\1{REDACTED}@"),
    )
)

# A cheap test that any pattern above could match: most texts hold none of these and skip seven searches.
_HINT = re.compile(r"sk-|hf_|gh[pousr]_|AIza|AKIA|xox|authorization|bearer|api[_-]?key|://[^\s/]*@", re.IGNORECASE)


def environment_secrets(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Returns the values of environment variables whose names say that they hold a secret, longest first.

    Args:
        environment: Variables to look at; None = those of this process.
    """
    variables = os.environ if environment is None else environment
    found = {
        value.strip()
        for name, value in variables.items()
        if _SECRET_NAME.search(name) and len(value.strip()) >= _MIN_SECRET
    }
    return tuple(sorted(found, key=len, reverse=True))


def scrub_text(text: str, secrets: tuple[str, ...] | None = None) -> str:
    """Returns the text with every secret replaced by `[redacted]`.

    Args:
        text: Any text.
        secrets: Literal secrets; None = those of the environment.
    """
    for secret in environment_secrets() if secrets is None else secrets:
        if secret in text:
            text = text.replace(secret, REDACTED)
    if _HINT.search(text):
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
    return text


def scrub(value: Any) -> Any:
    """Returns the value as plain JSON data without secrets.

    Dataclasses, mappings, sets, tuples, paths, dates and numpy values become what JSON knows. A number that is not
    finite becomes None: unknown is never a number.

    Args:
        value: Any nesting of data; it is not changed.
    """
    return _plain(value, environment_secrets())


def _plain(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return scrub_text(value, secrets)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {scrub_text(str(key), secrets): _field(str(key), item, secrets) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, secrets) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item, secrets) for item in value), key=repr)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)}, secrets)
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "tolist"):  # numpy scalars and arrays, without importing numpy
        return _plain(value.tolist(), secrets)
    return scrub_text(str(value), secrets)


def _field(name: str, value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str) and value and _SECRET_FIELD.fullmatch(name):
        return REDACTED
    return _plain(value, secrets)
