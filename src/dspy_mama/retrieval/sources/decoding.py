"""Bytes of a page to text: what decodes as UTF-8 is UTF-8, whatever the server says."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Final

from dspy_mama.retrieval.sources.page import SourceError

_META: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_HEAD: Final = 4096
_SUPERSETS: Final = {"shift_jis": "cp932", "iso8859-1": "cp1252", "ascii": "cp1252"}
"""What is labelled with the narrow charset is written in the wider one (WHATWG Encoding Standard)."""
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_UNUSUAL: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff]")
"""Controls and private characters: text decoded with the wrong charset is full of them."""

_UNDECLARED: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    ("cp932", lambda text: bool(re.search("[\u3041-\u30fe]", text))),
    ("euc_jp", lambda text: bool(re.search("[\u3041-\u30fe]", text))),
    ("cp1252", lambda text: not re.search("[\u0080-\uffff]{3}", text)),
)
"""What is tried where nothing is declared, and what shows that it fits: Japanese has kana, and Western text has no
three letters beyond ASCII in a row."""


def decode_page(content: bytes, charset: str, where: str) -> str:
    """Returns the text of an html or text page.

    Tried in order: byte order mark, UTF-8, the server's charset, the page's own, then those that the text itself shows
    to fit. Statistical guessing is left out: it takes short Japanese pages for Chinese ones.

    Args:
        content: The body.
        charset: Charset that the server named, or "".
        where: Address or file, for the message.

    Raises:
        SourceError: No charset fits.
    """
    for mark, codec in _BOMS:
        if content.startswith(mark) and (text := _strict(content, codec)) is not None:
            return text
    named = _META.search(content[:_HEAD])
    declared = [charset, named.group(1).decode() if named else ""]
    for candidate in ("utf-8", *declared):
        text = _strict(content, candidate)
        if text is not None:
            return text
    for candidate, proof in _UNDECLARED:
        text = _strict(content, candidate)
        if text is not None and proof(text):
            return text
    tried = ("utf-8", *declared, *(candidate for candidate, _ in _UNDECLARED))
    raise SourceError(where, f"its text is in none of {', '.join(dict.fromkeys(name for name in tried if name))}")


def _strict(content: bytes, charset: str) -> str | None:
    try:
        name = codecs.lookup(charset).name
        text = content.decode(_SUPERSETS.get(name, name))
    except (LookupError, UnicodeError):
        return None
    return None if _UNUSUAL.search(text) else text
