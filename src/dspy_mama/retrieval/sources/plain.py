"""Text of any source as the body of a Markdown document."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\u200b\u2060\ufeff\u00ad]")
_MARKED: Final = re.compile(r"^([ ]{0,3})(#{1,6}[ \t]|```|~~~)", re.MULTILINE)
_KANA: Final = re.compile(r"[\u3040-\u30ff]")


def clean(text: str) -> str:
    """Returns text without controls, with Unix line ends, at most one empty line in a row, and no trailing blanks."""
    text = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n"))
    text = text.replace("\xa0", " ").encode("utf-8", "replace").decode("utf-8")
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def escape(text: str) -> str:
    r"""Returns text in which no line is taken for a heading or a fence of code (`# x` becomes `\# x`)."""
    return _MARKED.sub(r"\1\\\2", text)


def one_line(text: str) -> str:
    """Returns text in one line, for titles and headings."""
    return " ".join(clean(text).split())


def language_of(text: str) -> str:
    """Returns `ja` where a text has kana, else `en`: the languages that a page need not name."""
    return "ja" if len(_KANA.findall(text[:20_000])) >= 10 else "en"


def slug(text: str, length: int = 40) -> str:
    """Returns the ASCII letters and digits of a text, joined by `-`; "" where it has none."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:length].strip("-")
