"""Web pages to text: headings, paragraphs, list items and table rows in order, without menus and scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dspy_mama.retrieval.sources.extras import require
from dspy_mama.retrieval.sources.page import SourceError
from dspy_mama.retrieval.sources.plain import clean, escape, one_line

# `rt` and `rp` hold the reading of Japanese words, which would stand twice.
_LEFT_OUT: Final = (
    "script", "style", "noscript", "template", "svg", "iframe", "object", "nav", "footer", "aside", "form", "button",
    "select", "rt", "rp",
)  # fmt: skip
_BLOCKS: Final = frozenset(
    {
        "address", "article", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl", "dt",
        "fieldset", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol", "p",
        "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
    }
)  # fmt: skip
_HEADING: Final = re.compile(r"h([1-6])")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of text that stands by itself.

    Attributes:
        text: One line.
        level: Level of a heading (1 to 6), 0 for text.
        item: It is an item of a list.
    """

    text: str
    level: int = 0
    item: bool = False


@dataclass(frozen=True, slots=True)
class WebText:
    """What a web page says.

    Attributes:
        title: Its title, or "".
        language: Two letters that it declares, or "".
        licence: Address or name that it declares (`rel=license`), or "".
        blocks: Its text.
    """

    title: str
    language: str
    licence: str
    blocks: tuple[Block, ...]

    def markdown(self) -> str:
        """Returns the text with headings marked."""
        lines = []
        for block in self.blocks:
            text = escape(block.text)
            lines.append(
                f"\n{'#' * block.level} {block.text}\n" if block.level else f"- {text}" if block.item else text
            )
        return clean("\n".join(lines))


def read_html(source: str, where: str) -> WebText:
    """Reads a web page, however broken its markup.

    Args:
        source: The page's text.
        where: Its address or file, for messages.

    Raises:
        SourceError: It holds no text.
        DeclarationError: The optional library is not installed.
    """
    soup = require("bs4", "html").BeautifulSoup(source, _parser())
    head = soup.find("title")
    language = str((soup.html.get("lang") if soup.html else None) or "")[:2].lower()
    licence = soup.find(["a", "link"], rel="license")
    for element in soup.find_all(list(_LEFT_OUT)):
        element.decompose()
    root = _main(soup)
    blocks = tuple(_blocks(root))
    if not any(block.level == 0 for block in blocks):
        raise SourceError(where, "the page holds no text (is it made by a script in the browser?)")
    first = next((block.text for block in blocks if block.level == 1), "")
    return WebText(
        title=one_line(first or (head.get_text() if head else "")),
        language=language if re.fullmatch("[a-z]{2}", language) else "",
        licence=str(licence.get("href") or licence.get_text(" ", strip=True)) if licence else "",
        blocks=blocks,
    )


def _parser() -> str:
    require("lxml", "html")
    return "lxml"


def _main(soup: Any) -> Any:
    """Returns the element of the page's own text where it is marked, else the whole body."""
    whole = soup.body or soup
    marked = soup.find_all("main") or soup.find_all("article")
    if len(marked) == 1 and len(marked[0].get_text()) >= len(whole.get_text()) / 2:
        return marked[0]
    return whole


def _blocks(root: Any) -> Iterator[Block]:
    """Walks the tree without recursion: broken pages nest as deep as they are long."""
    words: list[str] = []
    level, item = 0, False
    waiting: list[tuple[Any, bool]] = [(root, False)]
    while waiting:
        node, left = waiting.pop()
        name = getattr(node, "name", None)
        if name is None:
            if type(node).__name__ in ("NavigableString", "CData"):
                words.append(str(node))
            continue
        if name in ("td", "th"):
            words.append(" | " if "".join(words).strip() and not left else " ")
        if name in _BLOCKS or name == "br":
            text = one_line("".join(words))
            if text:
                yield Block(text, level, item)
            words = []
            if name != "br":
                heading = _HEADING.fullmatch(name)
                level = int(heading.group(1)) if heading and not left else 0
                item = name == "li" and not left
        if not left:
            waiting.append((node, True))
            waiting += [(child, False) for child in reversed(list(node.children))]
    text = one_line("".join(words))
    if text:
        yield Block(text, level, item)
