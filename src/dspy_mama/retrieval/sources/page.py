"""A fetched page, what can be wrong with it, and what kind it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["html", "pdf", "docx", "text", "json"]

_TYPES: Final[dict[str, Kind]] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/pdf": "pdf",
    "application/json": "json",
    "text/plain": "text",
    "text/markdown": "text",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}
_UNSAID: Final = ("", "application/octet-stream", "binary/octet-stream", "application/force-download", "text/plain")
"""Types that servers send when they do not know better: the bytes decide."""


class SourceError(Exception):
    """One page or file that gives no document, or not the whole of it; the others are kept.

    Attributes:
        where: Address, file or title.
        reason: What is wrong, in words that say what to do where something can be done.
    """

    def __init__(self, where: str, reason: str) -> None:
        """Builds the message."""
        self.where = where
        self.reason = reason
        super().__init__(f"{where}: {reason}")


class TransientError(Exception):
    """Worth another try.

    Attributes:
        reason: What happened.
        wait: Seconds that the server asks for, or None.
        lost: No answer came at all.
    """

    def __init__(self, reason: str, wait: float | None = None, *, lost: bool = False) -> None:
        """Keeps the facts."""
        super().__init__(reason)
        self.reason, self.wait, self.lost = reason, wait, lost


@dataclass(frozen=True, slots=True)
class Page:
    """What a server sent.

    Attributes:
        url: Address that was asked for.
        final_url: Address after redirects.
        content: The body, unpacked.
        content_type: Media type without parameters, in lower case, or "".
        charset: Charset that the server named, or "".
        fetched: ISO date on which the server last vouched for the content.
    """

    url: str
    final_url: str
    content: bytes
    content_type: str
    charset: str
    fetched: str


def kind_of(page: Page) -> Kind | None:
    """Returns what a page is, by its bytes where they tell, else by its declared type; None = nothing readable."""
    head = page.content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    if b"%PDF-" in page.content[:1024]:
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        return "docx" if _TYPES.get(page.content_type) == "docx" or page.final_url.endswith(".docx") else None
    if page.content_type in _UNSAID and head[:15].lower().startswith((b"<!doctype html", b"<html")):
        return "html"
    return _TYPES.get(page.content_type)
