"""Files that are either old or new, also after a crash."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, data: Any) -> None:
    """Writes a JSON file whole and durably: a reader sees the old content or the new, never half.

    Args:
        path: The file; its folder exists.
        data: Plain data without NaN or infinity.

    Raises:
        OSError: The disk refused; the old file is still there.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(text.encode("utf-8", "replace") + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Makes a rename outlive a power cut; systems that cannot open folders have no need of it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
