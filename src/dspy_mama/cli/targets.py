"""Where results go: a target that cannot be written is found before anything is paid for."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.settings import Settings


def check_target(
    target: Path, settings: Settings, what: str, *, option: str = "--out", endings: tuple[str, ...] = (".jsonl", ".csv")
) -> Path:
    """Returns a target that can be written and is none of the files that the run reads.

    Args:
        target: Where results go.
        settings: Settings of the run; every file that they name is one that must not be overwritten.
        what: What is written, in the plural, such as `labels`.
        option: The option that names the target.
        endings: Endings that it may have.

    Raises:
        DeclarationError: It has another ending, is or lies in an input, is a folder, or cannot be written.
    """
    name, target = f"{option} {target}", target.expanduser()
    if target.suffix not in endings:
        raise DeclarationError(f"{name}: {what} are written as {' or '.join(endings)}")
    for field, value in _paths(dataclasses.asdict(settings)):
        if _is_same(target, value):
            raise DeclarationError(f"{name}: this is the input ({field}), which {what} would overwrite; name another")
    for field, folder in _folders(settings):
        if target.resolve().is_relative_to(folder.resolve()):
            raise DeclarationError(f"{name}: lies in {field}={folder}, whose files are read; name a place outside it")
    if target.resolve().is_relative_to((Path(settings.tracking.root) / "runs").resolve()):
        raise DeclarationError(f"{name}: lies among the runs, whose records it could replace; name a place outside")
    if target.is_dir():
        raise DeclarationError(f"{name}: this is a folder; name a file in it")
    if target.parent.exists() and not (target.parent.is_dir() and os.access(target.parent, os.W_OK)):
        raise DeclarationError(f"{name}: no file can be written to {target.parent}; name another place")
    return target


def _paths(settings: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Yields every text of the settings that may name a file, with its field."""
    if isinstance(settings, str):
        yield field, settings
    elif isinstance(settings, dict):
        for key, value in settings.items():
            yield from _paths(value, f"{field}.{key}".lstrip("."))
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from _paths(value, field)


def _folders(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Yields the folders whose content a run reads."""
    for field, path in (("data.path", settings.data.path), ("corpus.path", settings.corpus.path)):
        if path and Path(path).expanduser().is_dir():
            yield field, Path(path).expanduser()


def _is_same(target: Path, text: str) -> bool:
    """Tells whether both name one file, also by way of a folder that does not exist yet."""
    try:
        source = Path(text).expanduser()
        linked = target.exists() and source.is_file() and target.samefile(source)
        return linked or (source.suffix == target.suffix and target.resolve() == source.resolve())
    except (OSError, ValueError, RuntimeError):  # a text that is no path, such as a long instruction
        return False
