"""Acts from Japanese Law Translation (Ministry of Justice of Japan)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dspy_mama.retrieval.corpus import Document
from dspy_mama.retrieval.sources.decoding import decode_page
from dspy_mama.retrieval.sources.html import read_html
from dspy_mama.retrieval.sources.page import Kind, SourceError
from dspy_mama.retrieval.sources.plain import one_line
from dspy_mama.retrieval.sources.polite import PoliteClient
from dspy_mama.retrieval.sources.statute import statute_markdown
from dspy_mama.settings.sources import JapaneseLawSettings

_KINDS: Final[tuple[Kind, ...]] = ("html",)
_ENTRY: Final = re.compile(r"(?:(en|ja):)?(\d{1,7})")
_SITE: Final = re.compile(
    r"\s*(?:[-|–]\s*(?:English|Japanese|日本語|英語))?\s*[-|–]\s*(?:Japanese Law Translation|日本法令外国語訳).*"
)
_LAW_NUMBER: Final = re.compile(
    r"(?:\w+ ){0,6}?(?:Act|Law|Order|Ordinance|Code) No\. ?\d+ of [^()]{4,40}"
    r"|[昭平令大明][^（）()\s]{2,20}(?:法律|政令|省令|令)第[^（）()\s]{1,12}号"
)
_TITLED: Final = re.compile(r"(.{3,250}?)\s*[(（]([^()（）]*(?:No\. ?\d+ of \d{4}|第[^()（）]{1,12}号))[)）]")
_VERSION: Final = re.compile(r"(?:Last Version|最終更新)[:：].{3,120}")
_HEAD: Final = 40
"""Lines of a page among which its name, number and version stand."""


def law_documents(client: PoliteClient, settings: JapaneseLawSettings) -> Iterator[Document | SourceError]:
    """Yields a document per act, or what is wrong with an entry."""
    for entry in settings.laws:
        found = _ENTRY.fullmatch(entry.strip())
        if not found:
            yield SourceError(
                entry, "is no number of a law (the digits in .../laws/view/3213), such as 3213 or ja:3213"
            )
            continue
        try:
            yield _law(client, settings, found.group(2), found.group(1) or settings.language)
        except SourceError as fault:
            yield fault


def _law(client: PoliteClient, settings: JapaneseLawSettings, number: str, language: str) -> Document:
    # The last part chooses the text: without it, both languages stand side by side.
    url = f"{settings.base.rstrip('/')}/{language}/laws/view/{number}/{language}"
    page = client.get(url, kinds=_KINDS)
    web = read_html(decode_page(page.content, page.charset, url), url)
    lines = [block.text for block in web.blocks]
    text, articles = statute_markdown(lines, language)
    if not articles:
        raise SourceError(url, f"holds no article of a law in {language} (is the number right, and is it translated?)")
    name, official = _names(lines, web.title)
    title = f"{name} ({official})" if official and language == "en" else f"{name}（{official}）" if official else name
    version = next((line for line in lines[:_HEAD] if _VERSION.fullmatch(line)), "")
    return Document(
        id=f"jlt-{number}-{language}",
        title=title,
        publisher="Japanese Law Translation, Ministry of Justice of Japan",
        url=url,
        licence=settings.licence,
        language=language,
        jurisdiction="JP",
        domains=settings.domains,
        collection="law",
        text=f"# {title}\n\n{text}",
        accessed=page.fetched,
        references=(version,) if version else (),
    )


def _names(lines: Sequence[str], title: str) -> tuple[str, str]:
    """Returns the name of the act and its number ("" where the page does not say)."""
    for line in lines[:_HEAD]:
        if titled := _TITLED.fullmatch(line):
            return one_line(titled.group(1)), titled.group(2)
    official = next((line for line in lines[:_HEAD] if _LAW_NUMBER.fullmatch(line)), "")
    return _SITE.sub("", title) or "Act", official
