"""Documents as files of the corpus format: Markdown with front matter, read back before they are kept."""

from __future__ import annotations

import os
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import yaml

from dspy_mama.core.errors import DeclarationError
from dspy_mama.retrieval.corpus import Document, parse_document
from dspy_mama.retrieval.sources.page import SourceError

_LEFT_OUT: Final = ("text", "file")


def render(document: Document) -> str:
    """Returns a document as `retrieval.corpus` reads it."""
    facts: dict[str, Any] = {f.name: getattr(document, f.name) for f in fields(document) if f.name not in _LEFT_OUT}
    header = {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()}
    header = {name: value for name, value in header.items() if value or name == "url"}
    front = yaml.safe_dump(header, allow_unicode=True, sort_keys=False, width=2**20)
    return f"---\n{front}---\n\n{document.text}\n"


def write(document: Document, folder: Path) -> bool:
    """Writes a document and tells whether its file is new or has changed; the file appears complete or not at all.

    Raises:
        SourceError: The document would not be read by `index build`.
        OSError: The folder cannot be written.
    """
    text = render(document)
    try:
        parse_document(text)
    except DeclarationError as error:
        raise SourceError(document.url or document.title, f"gives no valid document ({error})") from None
    path = folder / f"{document.id}.md"
    content = text.encode("utf-8")
    if path.is_file() and path.read_bytes() == content:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=folder, prefix=".")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        # The draft is readable by its owner alone, other documents by whom the user's mask allows.
        Path(draft).chmod(0o666 & ~_mask())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return True


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
