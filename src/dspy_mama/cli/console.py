"""Where tables are printed."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console

FILE_WIDTH: Final = 132
"""Columns of a table that goes to a file or a pipe, where there is no window to fit."""


def make_console() -> Console:
    """Returns a console as wide as the terminal, or wide enough for every table where there is none."""
    return Console(width=None if sys.stdout.isatty() else FILE_WIDTH)
