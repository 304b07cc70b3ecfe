"""PDF files to text with page numbers, which become the sections that a citation names."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from dspy_mama.retrieval.sources.extras import require
from dspy_mama.retrieval.sources.page import SourceError
from dspy_mama.retrieval.sources.plain import clean, escape, one_line

_MOST_PAGES: Final = 3000
_HYPHEN: Final = re.compile(r"(?<=[a-zäöüß])-\n(?=[a-zäöüß])")
_READABLE: Final = 0.5
"""Share of pages that must be readable: below it the file counts as broken."""


@dataclass(frozen=True, slots=True)
class PdfText:
    """What a PDF says.

    Attributes:
        title: Title in its properties, or "".
        pages: Text per page number, from 1; pages without text are left out.
        faults: Pages that could not be read, and why.
    """

    title: str
    pages: dict[int, str]
    faults: tuple[str, ...]

    def markdown(self) -> str:
        """Returns the text with a heading `page N` per page."""
        return "\n\n".join(f"## page {number}\n\n{escape(text)}" for number, text in self.pages.items())


def read_pdf(content: bytes, where: str) -> PdfText:
    """Reads a PDF.

    Args:
        content: The file.
        where: Its address or name, for messages.

    Raises:
        SourceError: It is encrypted, broken, or holds no text.
        DeclarationError: The optional library is not installed.
    """
    pypdf = require("pypdf", "pdf")
    with _quiet():
        return _read(pypdf, content, where)


def _read(pypdf: Any, content: bytes, where: str) -> PdfText:
    broken = _errors(pypdf)
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise SourceError(where, "the PDF is protected by a password")
        count = len(reader.pages)
        title = one_line(str((reader.metadata or {}).get("/Title") or ""))
    except broken as error:
        raise SourceError(where, f"the PDF cannot be read: it is broken or protected ({_said(error)})") from None
    pages: dict[int, str] = {}
    faults = []
    for number in range(1, min(count, _MOST_PAGES) + 1):
        try:
            text = clean(_HYPHEN.sub("", reader.pages[number - 1].extract_text() or ""))
        except broken as error:
            faults.append(f"page {number} cannot be read ({_said(error)})")
            continue
        if text:
            pages[number] = text
    if count > _MOST_PAGES:
        faults.append(f"only the first {_MOST_PAGES:,} of {count:,} pages were read")
    if not pages or len(faults) > count * _READABLE:
        reason = faults[0] if faults else "it holds no text: recognise the scanned pages (OCR) first"
        raise SourceError(where, f"the PDF gives no document: {reason}")
    return PdfText(title, pages, tuple(faults))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps pypdf from warning of flaws, without naming the file, that it mends itself."""
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _errors(pypdf: Any) -> tuple[type[Exception], ...]:
    """What pypdf lets through on broken files besides its own errors."""
    own: tuple[type[Exception], ...] = (pypdf.errors.PyPdfError, pypdf.errors.DependencyError)
    return (*own, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, ArithmeticError, OSError)


def _said(error: Exception) -> str:
    return (one_line(str(error)) or type(error).__name__)[:120]
