"""Documents to overlapping chunks that end at headings, paragraphs or sentences. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Final

from dspy_mama.core.ids import content_hash
from dspy_mama.retrieval.corpus import Document
from dspy_mama.retrieval.sentences import paragraph_ends, past_space, sentence_ends, soft_end
from dspy_mama.settings import CorpusSettings

CHUNKER_VERSION: Final = "1"
"""Rises when the same text is cut differently; an index of another version is refused until it is built again."""

_SOFT, _SENTENCE, _PARAGRAPH, _HEADING = 0, 1, 2, 3
_FILL: Final = {_HEADING: 0.6, _PARAGRAPH: 0.8, _SENTENCE: 0.5, _SOFT: 0.0}
"""How full a chunk must be, as a share of its size, to end at a border of this strength."""

_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]")
_HEADING_LINE: Final = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_ARTICLE_LINE: Final = re.compile(
    r"(第[0-9０-９一二三四五六七八九十百千〇]+条(?:の[0-9０-９一二三四五六七八九十]+)*"
    r"(?:[（(][^）)\n]{1,40}[）)])?)(?=[\s　]|$)"
    r"|(Article \d+[a-z]?(?:-\d+)?)(?=[.:(]|$)"
    r"|(§+ ?\d+[a-z]?)(?=[\s.:])"
)
_ARTICLE_LEVEL: Final = 7
_LABEL_LIMIT: Final = 200
"""Characters of a section label: it is shown to the LM with every passage."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A slice of a document.

    Attributes:
        id: Document id, `#`, and 12 hex digits of the text's hash: the same after every build.
        document: Id of its document.
        text: The slice, stripped.
        section: Headings it covers (for law the articles), or "".
        start: Offset of the slice in the document's text.
        end: Offset after the slice.
    """

    id: str
    document: str
    text: str
    section: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Section:
    start: int
    body: int
    label: str


def count_cjk(text: str) -> int:
    """Returns the number of Chinese, Japanese and Korean letters."""
    return 0 if text.isascii() else len(_CJK.findall(text))


def cjk_share(text: str) -> float:
    """Returns the share of Chinese, Japanese and Korean letters among all letters, in [0, 1]."""
    letters = sum(character.isalpha() for character in text)
    return count_cjk(text) / letters if letters else 0.0


def is_cjk(text: str) -> bool:
    """Tells whether a text is Japanese, Chinese or Korean with at most some foreign words."""
    return cjk_share(text) > 0.3


def chunk_document(document: Document, settings: CorpusSettings | None = None) -> tuple[Chunk, ...]:
    """Cuts a document into overlapping chunks, in order, none empty and no two alike.

    Args:
        document: The document.
        settings: Sizes in characters; Japanese text takes the `cjk_` sizes.
    """
    sizes = settings or CorpusSettings()
    text = document.text
    cjk = is_cjk(text)
    size = sizes.cjk_chunk_size if cjk else sizes.chunk_size
    overlap = sizes.cjk_chunk_overlap if cjk else sizes.chunk_overlap
    sections = _sections(text, document.title)
    chunks: dict[str, Chunk] = {}
    for start, end in _spans(len(text), _borders(text, sections, size, overlap), size, overlap):
        piece = text[start:end].strip()
        if piece and piece not in chunks:
            label = _label(sections, start, end, len(text))
            identity = f"{document.id}#{content_hash(piece, 12)}"
            chunks[piece] = Chunk(identity, document.id, piece, label, start, end)
    return tuple(chunks.values())


def _sections(text: str, title: str) -> list[_Section]:
    """Returns the sections in order; the document's own title is no part of a label."""
    sections: list[_Section] = []
    path: list[tuple[int, str]] = []
    offset, fenced = 0, False
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if bare.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        found = None if fenced else _heading(bare)
        if found:
            level, label, length = found
            path = [entry for entry in path if entry[0] < level] + [(level, label)]
            shown = " > ".join(name for depth, name in path if not (depth == 1 and name == title))
            sections.append(_Section(offset, offset + (length or len(line)), shown))
        offset += len(line)
    return sections


def _heading(line: str) -> tuple[int, str, int | None] | None:
    """Returns level, label and the length of a label that text follows in the same line, or None for no heading."""
    if found := _HEADING_LINE.match(line):
        return (len(found.group(1)), found.group(2), None) if found.group(2) else None
    if found := _ARTICLE_LINE.match(line):
        return _ARTICLE_LEVEL, found.group(), found.end()
    return None


def _borders(text: str, sections: list[_Section], size: int, overlap: int) -> list[tuple[int, int]]:
    """Returns (offset, strength) in order; neighbouring borders are at most `size` apart."""
    strength = dict.fromkeys(sentence_ends(text), _SENTENCE)
    strength.update(dict.fromkeys(paragraph_ends(text), _PARAGRAPH))
    strength.update({section.start: _HEADING for section in sections})
    offsets = sorted(strength)
    for section in sections:
        # A heading stays with what stands under it, be it text or a lower heading.
        last = past_space(text, section.body)
        for offset in offsets[bisect_right(offsets, section.start) : bisect_right(offsets, last)]:
            strength.pop(offset, None)
    strength.pop(0, None)
    strength[len(text)] = _HEADING
    step = max(1, min(size - overlap, overlap) // 2) if overlap else size
    before = 0
    for offset in sorted(strength):
        while offset - before > (step if strength.get(before) == _SOFT else size):
            before = soft_end(text, before, before + step)
            strength.setdefault(before, _SOFT)
        before = offset
    return sorted(strength.items())


def _spans(length: int, borders: list[tuple[int, int]], size: int, overlap: int) -> list[tuple[int, int]]:
    """Returns (start, end) of each chunk; starts and ends rise, and nothing is left out."""
    offsets = [offset for offset, _ in borders]
    spans: list[tuple[int, int]] = []
    start, done = 0, 0
    while done < length:
        end = length if length - start <= size else _chunk_end(borders, offsets, start, done, size)
        spans.append((start, end))
        if end < length:
            following = offsets[bisect_right(offsets, end)]
            start = _next_start(borders, offsets, (start, end), following - size, overlap)
        done = end
    return spans


def _chunk_end(borders: list[tuple[int, int]], offsets: list[int], start: int, done: int, size: int) -> int:
    first = bisect_right(offsets, max(start, done))
    within = borders[first : bisect_right(offsets, start + size)]
    for wanted in (_HEADING, _PARAGRAPH, _SENTENCE, _SOFT):
        floor = start + _FILL[wanted] * size
        ends = [offset for offset, strength in within if strength >= wanted and offset >= floor]
        if ends:
            return ends[-1]
    raise AssertionError("borders lie at most one chunk size apart")


def _next_start(
    borders: list[tuple[int, int]], offsets: list[int], span: tuple[int, int], lowest: int, overlap: int
) -> int:
    """Returns the border nearest to `overlap` characters before the end, from where the next border is in reach."""
    start, end = span
    floor = max(start + 1, lowest, end - overlap - overlap // 2)
    candidates = borders[bisect_left(offsets, floor) : bisect_right(offsets, end)]
    ideal = end - overlap
    # A cut inside a sentence is the last resort: it counts as further away than any sentence end.
    return min(candidates, key=lambda b: (abs(b[0] - ideal) + (overlap if b[1] == _SOFT else 0), b[0]))[0]


def _label(sections: list[_Section], start: int, end: int, length: int) -> str:
    """Returns the labels of the sections that a span covers, in order, each once."""
    labels: list[str] = []
    for index, section in enumerate(sections):
        stop = sections[index + 1].start if index + 1 < len(sections) else length
        if section.label and section.start < end and stop > start and section.label not in labels:
            labels.append(section.label)
    text = "; ".join(labels)
    return text if len(text) <= _LABEL_LIMIT else text[: _LABEL_LIMIT - 2].rstrip() + " …"
