"""Content hashes: the same content has the same id on every machine and in every process."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def content_hash(text: str, length: int = 64) -> str:
    """Returns the first `length` hex digits of the text's SHA-256 (lone surrogates are replaced)."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:length]


def asked(question: str) -> str:
    """Returns what tells one question from another: its letters, marks and digits in words, whatever case and signs."""
    folded = unicodedata.normalize("NFKC", question).casefold()
    words = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in folded).split()
    return " ".join(words) or folded.strip()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [_plain(v) for v in value]
        return sorted(items, key=repr) if isinstance(value, (set, frozenset)) else items
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def object_hash(value: Any, length: int = 64) -> str:
    """Returns a hash of plain data, a dataclass or a mapping, whatever the order of its keys."""
    return content_hash(json.dumps(_plain(value), sort_keys=True, ensure_ascii=False), length)


def file_hash(path: Path) -> str:
    """Returns the file's SHA-256, read in blocks.

    Raises:
        OSError: The file cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def files_hash(paths: Iterable[Path]) -> str:
    """Returns one hash for several files, from their names and contents, whatever their order."""
    return object_hash({path.name: file_hash(path) for path in paths})
