"""Which files of a corpus folder are its documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def document_files(root: Path) -> Iterator[Path]:
    """Yields every `*.md` below a folder, sorted; `README.md` and hidden files are no documents."""
    for path in sorted(root.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if path.suffix.lower() == ".md" and path.name.lower() != "readme.md" and not hidden and path.is_file():
            yield path
