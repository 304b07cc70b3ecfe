"""The lines of a Japanese statute, English or Japanese, to Markdown with a heading per article and paragraph. Pure.

It goes by the wording that every statute shares ("Article 19", "(2)", 第十九条, ２), not by the markup of a site, which
changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from dspy_mama.retrieval.sources.plain import clean, escape

_MARK: Final = "\n## "
_KANJI: Final = "〇一二三四五六七八九"
_WIDE: Final = str.maketrans("０１２３４５６７８９", "0123456789")

# A sentence may begin with the number of an article too ("Article 31 of the Act", 第三条の規定): what follows decides.
_ARTICLE_EN: Final = re.compile(r"Articles? (\d+(?:-\d+)*)((?: (?:and|to|through) \d+(?:-\d+)*)?)(?![\d,;.-])\s*(.*)")
_SENTENCE_EN: Final = re.compile(r"[,;.]|(?:of|to|and|or|through|in|shall|applies|apply|is|are|paragraph)\b")
_NUMBER_JA: Final = r"[0-9０-９〇一二三四五六七八九十百千]+"
_ARTICLE_JA: Final = re.compile(rf"第({_NUMBER_JA})条((?:の{_NUMBER_JA})*)[\s　]*(.*)")
_SENTENCE_JA: Final = re.compile(r"第|の|に|及び|又は|若しくは|並びに|から|、|中|を|と|ただし書|本文|（見出し")
_PARAGRAPH_EN: Final = re.compile(r"\((\d{1,2})\)\s*(.*)")
_PARAGRAPH_JA: Final = re.compile(r"([0-9０-９]{1,2})[\s　]*(?![0-9０-９年月日号条項])(.+)")
_CAPTION: Final = re.compile(r"[(（](?!\d{1,2}[)）]|[ivxlc]{1,6}[)）]|[a-z][)）])(.{1,200})[)）]")
_PART: Final = re.compile(
    r"(?:Part|Book|Chapter|Section|Subsection|Division) [IVXLC\d]+(?:-\d+)*\b.*"
    r"|第[0-9０-９一二三四五六七八九十]+[編章節款目](?:の[一二三四五六七八九十]+)*[\s　].*"
)
_CONTENTS: Final = re.compile(r".*(?:\(Articles? [^)]*\)|（第[^）]*条[^）]*）)\s*")
_SUPPLEMENT: Final = re.compile(r"(Supplementary Provisions?|附[\s　]*則)(.*)")


@dataclass(slots=True)
class _State:
    """Where the reader stands.

    Attributes:
        lines: What has been written.
        place: Heading of the article or supplement without its paragraph.
        order: Numbers of the article, which rise.
        paragraph: Number of the paragraph.
        supplement: Heading of the supplementary provisions, or "".
        caption: Caption that waits for its article.
        articles: How many there are.
    """

    lines: list[str] = field(default_factory=list)
    place: str = ""
    order: tuple[int, ...] = ()
    paragraph: int = 1
    supplement: str = ""
    caption: str = ""
    articles: int = 0


def statute_markdown(lines: Sequence[str], language: str) -> tuple[str, int]:
    """Returns the text with its articles and paragraphs as headings, and how many articles it has.

    Everything before the first part or article (menus, the table of contents) is left out. Articles of one paragraph
    have one heading (`Article 17`), others one per paragraph (`Article 19, paragraph 2`).

    Args:
        lines: One per block of the page.
        language: `en` or `ja`.
    """
    state = _State()
    japanese = language == "ja"
    for line in lines:
        if _take_supplement(state, line) or _take_article(state, line, japanese):
            continue
        if _PART.fullmatch(line):
            if not _CONTENTS.fullmatch(line):
                state.lines.append(f"\n**{line}**\n")
        elif not state.place:
            _keep_caption(state, line)
        elif not _take_paragraph(state, line, japanese) and not _keep_caption(state, line):
            state.lines.append(escape(line))
    if state.caption:
        state.lines.append(state.caption)
    return clean("\n".join(_first_paragraphs(state.lines, japanese))), state.articles


def _take_article(state: _State, line: str, japanese: bool) -> bool:
    found = (_ARTICLE_JA if japanese else _ARTICLE_EN).match(line)
    if not found or (_SENTENCE_JA if japanese else _SENTENCE_EN).match(found.group(3)):
        return False
    if japanese:
        numbers = [found.group(1), *found.group(2).split("の")[1:]]
        order = tuple(_number(part) for part in numbers)
        label = f"第{found.group(1)}条{found.group(2)}"
    else:
        order = tuple(int(part) for part in found.group(1).split("-"))
        label = f"Article{'s' if found.group(2) else ''} {found.group(1)}{found.group(2)}"
    if order <= state.order:
        return False
    state.order, state.paragraph, state.articles = order, 1, state.articles + 1
    state.place = f"{state.supplement}{'　' if japanese else ', '}{label}" if state.supplement else label
    state.lines.append(_heading(state.place))
    if state.caption:
        state.lines.append(state.caption)
        state.caption = ""
    rest = found.group(3)
    first = _PARAGRAPH_EN.match(rest)
    if first and first.group(1) == "1" and not japanese:
        rest = first.group(2)
    if rest:
        state.lines.append(escape(rest))
    return True


def _take_paragraph(state: _State, line: str, japanese: bool) -> bool:
    found = (_PARAGRAPH_JA if japanese else _PARAGRAPH_EN).match(line)
    if not found:
        return False
    number = int(found.group(1).translate(_WIDE))
    if number != state.paragraph + 1:
        # English texts number the first paragraph as well, in its article's line or in one of its own.
        if number == 1 and state.paragraph == 1 and not japanese:
            state.lines.append(escape(found.group(2)))
            return True
        return False
    state.paragraph = number
    state.lines.append(_heading(_with_paragraph(state.place, number, japanese)))
    state.lines.append(escape(found.group(2)))
    return True


def _take_supplement(state: _State, line: str) -> bool:
    found = _SUPPLEMENT.fullmatch(line)
    if not found or not state.articles or len(line) > 120:
        return False
    amending = re.search(r"[\[［〔(（]([^\]］〕)）]+)", found.group(2))
    name = f"{found.group(1)} ({amending.group(1)})" if amending else found.group(1)
    state.supplement = state.place = re.sub(r"附[\s　]*則", "附則", name)
    state.order, state.paragraph = (), 1
    state.lines.append(_heading(state.place))
    return True


def _keep_caption(state: _State, line: str) -> bool:
    """Keeps a caption for the article that follows; one that no article follows is text."""
    found = _CAPTION.fullmatch(line)
    if state.caption and state.place:
        state.lines.append(state.caption)
    state.caption = line if found else ""
    return found is not None


def _with_paragraph(place: str, number: int, japanese: bool) -> str:
    return f"{place}第{_kanji(number)}項" if japanese else f"{place}, paragraph {number}"


def _first_paragraphs(lines: list[str], japanese: bool) -> list[str]:
    """Names the first paragraph of articles that have a second one, and drops headings over nothing but another."""
    headings = {line for line in lines if line.startswith(_MARK)}
    out = []
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if line in headings:
            if following in headings:
                continue
            place = line.strip().removeprefix("## ")
            if _heading(_with_paragraph(place, 2, japanese)) in headings:
                line = _heading(_with_paragraph(place, 1, japanese))
        out.append(line)
    return out


def _heading(text: str) -> str:
    return f"{_MARK}{text}\n"


def _number(text: str) -> int:
    """Returns a number below 10,000 in kanji or digits."""
    plain = text.translate(_WIDE)
    if plain.isdigit():
        return int(plain)
    total, digit = 0, 0
    for sign in plain:
        if sign in _KANJI:
            digit = digit * 10 + _KANJI.index(sign)
        elif sign in "十百千":
            total += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[sign]
            digit = 0
        else:
            digit = digit * 10 + int(sign)
    return total + digit


def _kanji(number: int) -> str:
    """Returns a number below 100 in kanji."""
    tens, ones = divmod(number, 10)
    return ("" if tens < 2 else _KANJI[tens]) + ("十" if tens else "") + (_KANJI[ones] if ones else "")
