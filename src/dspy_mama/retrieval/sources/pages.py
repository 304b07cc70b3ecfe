"""Single pages of the web: html, pdf, docx or text, each a document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from dspy_mama.retrieval.corpus import Document
from dspy_mama.retrieval.sources.page import Kind, SourceError, kind_of
from dspy_mama.retrieval.sources.polite import PoliteClient
from dspy_mama.retrieval.sources.readers import make_document, read_content
from dspy_mama.settings.sources import AboutSettings, PageSettings

_KINDS: Final[tuple[Kind, ...]] = ("html", "pdf", "docx", "text")


def page_documents(
    client: PoliteClient, pages: tuple[PageSettings, ...], about: AboutSettings
) -> Iterator[Document | SourceError]:
    """Yields a document per page, or what is wrong with it."""
    for page in pages:
        try:
            yield from _read(client, page, about)
        except SourceError as fault:
            yield fault


def _read(client: PoliteClient, page: PageSettings, about: AboutSettings) -> Iterator[Document | SourceError]:
    fetched = client.get(page.url, kinds=_KINDS)
    kind = kind_of(fetched)
    assert kind is not None
    content = read_content(fetched.content, kind, fetched.charset, page.url)
    parts = urlsplit(page.url)
    name = PurePosixPath(unquote(parts.path)).stem or parts.netloc
    yield from make_document(content, about, page, identity=page.url, name=name, accessed=fetched.fetched)
