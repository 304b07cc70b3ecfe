"""Where results go: a target that cannot be written is found before anything is paid for."""

from __future__ import annotations

import os
from pathlib import Path

from dspy_mama.core.errors import DeclarationError


def check_target(target: Path, source: Path | None, what: str) -> Path:
    """Returns a target that can be written as .jsonl or .csv.

    Args:
        target: Where results go.
        source: The file that is worked on, which must not be overwritten.
        what: What is written, in the plural, such as `labels`.

    Raises:
        DeclarationError: It has another ending, is the source or a folder, or its folder cannot be written to.
    """
    if target.suffix not in (".jsonl", ".csv"):
        raise DeclarationError(f"--out {target}: {what} are written as .jsonl or .csv")
    if source is not None and _is_same(target, source):
        raise DeclarationError(f"--out {target}: this is the input, which {what} would overwrite; name another")
    if target.is_dir():
        raise DeclarationError(f"--out {target}: this is a folder; name a file in it")
    if target.parent.exists() and not (target.parent.is_dir() and os.access(target.parent, os.W_OK)):
        raise DeclarationError(f"--out {target}: no file can be written to {target.parent}; name another place")
    return target


def _is_same(target: Path, source: Path) -> bool:
    """Tells whether both are one file, also by way of a folder that does not exist yet."""
    linked = target.exists() and source.exists() and target.samefile(source)
    return linked or target.resolve() == source.resolve()
