"""Any readable file or page to a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dspy_mama.core.ids import content_hash
from dspy_mama.retrieval.corpus import Document
from dspy_mama.retrieval.sources.decoding import decode_page
from dspy_mama.retrieval.sources.docx import read_docx
from dspy_mama.retrieval.sources.html import read_html
from dspy_mama.retrieval.sources.page import Kind, SourceError
from dspy_mama.retrieval.sources.pdf import read_pdf
from dspy_mama.retrieval.sources.plain import clean, escape, language_of, one_line, slug
from dspy_mama.settings.sources import AboutSettings, PageSettings

_NOT_STATED: Final = "not stated"
_LONGEST_TITLE: Final = 200
_MOST_TEXT: Final = 20_000_000
"""Bytes of html or text: parsed, they take some thirty times as much memory."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a reader finds in a file.

    Attributes:
        title: Its own title, or "".
        text: Markdown.
        language: Language that it declares, or "".
        licence: Licence that it declares, or "".
        faults: Parts that could not be read.
    """

    title: str
    text: str
    language: str = ""
    licence: str = ""
    faults: tuple[str, ...] = ()


def read_content(content: bytes, kind: Kind, charset: str, where: str, *, markdown: bool = False) -> Content:
    """Reads html, pdf, docx or text.

    Args:
        content: The bytes.
        kind: What they are.
        charset: Charset that a server named, or "".
        where: Address or file, for messages.
        markdown: Text is Markdown: its headings are kept.

    Raises:
        SourceError: It holds nothing that can be read.
        DeclarationError: An optional library is not installed.
    """
    if kind == "pdf":
        pdf = read_pdf(content, where)
        return Content(pdf.title, pdf.markdown(), faults=pdf.faults)
    if kind == "docx":
        return Content(*read_docx(content, where))
    if len(content) > _MOST_TEXT:
        raise SourceError(where, f"larger than {_MOST_TEXT:,} bytes, which is no text to cite from")
    text = decode_page(content, charset, where)
    if kind == "html":
        page = read_html(text, where)
        return Content(page.title, page.markdown(), page.language, page.licence)
    text = clean(text)
    if not text:
        raise SourceError(where, "holds no text")
    first = text.splitlines()[0]
    title = one_line(first.lstrip("# ")) if markdown and first.startswith("# ") else ""
    return Content(title, text if markdown else escape(text))


def make_document(
    content: Content, about: AboutSettings, page: PageSettings | None, *, identity: str, name: str, accessed: str
) -> Iterator[Document | SourceError]:
    """Yields the document of a file or page, and what of it could not be read.

    Args:
        content: What was read.
        about: What documents say of themselves where their source does not.
        page: What this one says; None for a file.
        identity: Address or path; the id is made from it, so that it stays when the text changes.
        name: Title where there is no other, and the readable part of the id.
        accessed: ISO date.
    """

    def said(field: str) -> str | None:
        own: str | None = getattr(page, field, None) if page else None
        return own or getattr(about, field, None)

    title = one_line((page.title if page else None) or content.title or name)[:_LONGEST_TITLE]
    kind = "page" if page else "file"
    readable = "-".join(part for part in (kind, slug(name, 60), content_hash(identity, 8)) if part)
    body = content.text if content.text.startswith(f"# {title}\n") else f"# {title}\n\n{content.text}"
    yield Document(
        id=readable,
        title=title,
        publisher=said("publisher") or (identity.split("/")[2] if page else "local file"),
        url=page.url if page else "",
        licence=said("licence") or content.licence or _NOT_STATED,
        language=said("language") or content.language or language_of(content.text),
        jurisdiction=said("jurisdiction") or about.jurisdiction,
        domains=(page.domains if page and page.domains else about.domains),
        collection=said("collection") or about.collection,
        text=body,
        accessed=accessed,
    )
    for fault in content.faults:
        yield SourceError(identity, fault)
