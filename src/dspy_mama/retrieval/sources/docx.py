"""Word files to text with headings."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Final

from dspy_mama.retrieval.sources.extras import require
from dspy_mama.retrieval.sources.page import SourceError
from dspy_mama.retrieval.sources.plain import clean, escape, one_line

_MOST_UNPACKED: Final = 200_000_000
"""Bytes of the unpacked file: a small archive can hold any amount."""
_HEADING: Final = re.compile(r"Heading ([1-6])")


def read_docx(content: bytes, where: str) -> tuple[str, str]:
    """Returns the title ("" where the file names none) and the text, with headings marked.

    Args:
        content: The file.
        where: Its address or name, for messages.

    Raises:
        SourceError: It is no Word file, is broken, or holds no text.
        DeclarationError: The optional library is not installed.
    """
    docx = require("docx", "docx")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > _MOST_UNPACKED:
            raise SourceError(where, f"the Word file unpacks to {unpacked:,} bytes, more than {_MOST_UNPACKED:,}")
        document = docx.Document(io.BytesIO(content))
        title = one_line(document.core_properties.title or "")
        lines = []
        for block in document.iter_inner_content():
            if hasattr(block, "rows"):
                lines += [escape(" | ".join(one_line(cell.text) for cell in row.cells)) for row in block.rows]
            elif block.text.strip():
                lines.append(_paragraph(str(block.style.name if block.style else ""), block.text))
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, SyntaxError) as error:
        raise SourceError(where, f"the Word file cannot be read ({type(error).__name__})") from None
    text = clean("\n".join(lines))
    if not text:
        raise SourceError(where, "the Word file holds no text")
    return title, text


def _paragraph(style: str, text: str) -> str:
    heading = _HEADING.fullmatch(style)
    if heading or style == "Title":
        return f"\n{'#' * (int(heading.group(1)) if heading else 1)} {one_line(text)}\n"
    return ("- " if style.startswith("List") else "") + escape(clean(text))
