"""Silence while DSPy searches: its bars, words and logs are not this library's."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import Any

logger = logging.getLogger(__name__)


class _Printed:
    """Takes what DSPy prints."""

    def write(self, text: str) -> int:
        if text.strip():
            logger.debug("%s", text.rstrip())
        return len(text)

    def flush(self) -> None:
        return


class _WithoutBars:
    """Lets everything through but progress bars, which begin at the start of their line anew."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._bar = False

    def write(self, text: str) -> int:
        if text.startswith("\r") or (self._bar and not text.strip()):
            self._bar = True
            return len(text)
        self._bar = False
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps DSPy's own words out of stdout, which belongs to the command's result, and texts of pairs out of logs.

    DSPy logs a pair's texts where one fails, and every instruction that it tries. With debug logging they are shown.
    """
    own = logging.getLogger("dspy")
    before = own.level
    if not logger.isEnabledFor(logging.DEBUG):
        own.setLevel(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(_Printed()), contextlib.redirect_stderr(_WithoutBars(sys.stderr)):
            yield
    finally:
        own.setLevel(before)
