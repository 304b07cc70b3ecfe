"""A folder of the user's: txt, md, html, pdf and docx, each a document."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.retrieval.corpus import Document, parse_document
from dspy_mama.retrieval.sources.decoding import decode_page
from dspy_mama.retrieval.sources.page import Kind, SourceError
from dspy_mama.retrieval.sources.readers import make_document, read_content
from dspy_mama.settings.sources import AboutSettings

_KINDS: Final[dict[str, Kind]] = {
    ".txt": "text",
    ".md": "text",
    ".markdown": "text",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
}


def file_documents(folder: str, about: AboutSettings, out: Path, most_bytes: int) -> Iterator[Document | SourceError]:
    """Yields a document per readable file, or what is wrong with it; hidden files and other kinds are left out.

    Markdown with front matter is taken as it is. The access date of a file is the day of its last change.

    Args:
        folder: Folder, with all below it.
        about: What documents say of themselves.
        out: Folder of the documents, which is not read where it lies inside.
        most_bytes: Largest file.

    Raises:
        DeclarationError: The folder does not exist.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise DeclarationError(f"corpus.files: {root} is not a folder")
    for path in sorted(root.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        kind = _KINDS.get(path.suffix.lower())
        if hidden or kind is None or not path.is_file() or out.resolve() in path.resolve().parents:
            continue
        name = path.relative_to(root).as_posix()
        try:
            yield from _read(path, name, kind, about, most_bytes)
        except SourceError as fault:
            yield fault
        except OSError as error:
            yield SourceError(name, f"cannot be read ({error.strerror})")


def _read(path: Path, name: str, kind: Kind, about: AboutSettings, most_bytes: int) -> Iterator[Document | SourceError]:
    facts = path.stat()
    if facts.st_size > most_bytes:
        raise SourceError(name, f"larger than {most_bytes:,} bytes (corpus.http.max_bytes)")
    content = path.read_bytes()
    markdown = path.suffix.lower() in (".md", ".markdown")
    if markdown and content.lstrip(b"\xef\xbb\xbf").startswith(b"---"):
        try:
            yield parse_document(decode_page(content, "", name), name)
        except DeclarationError as error:
            raise SourceError(name, str(error).removeprefix(f"{name}: ")) from None
        return
    changed = datetime.datetime.fromtimestamp(facts.st_mtime, datetime.UTC).date().isoformat()
    read = read_content(content, kind, "", name, markdown=markdown)
    yield from make_document(read, about, None, identity=name, name=path.stem, accessed=changed)
