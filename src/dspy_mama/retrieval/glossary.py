"""A bilingual glossary: which concepts a text names, and what they are called in other languages.

Words of a Japanese question do not stand in an English document. What stands there are the words for the same things,
so a search by words crosses languages through a list of them (dictionary-based retrieval; Pirkola 1998).
"""

from __future__ import annotations

import csv
import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.resources import shipped
from dspy_mama.retrieval.words import folded, has_cjk, singular, tokens_of

SHIPPED: Final = "shipped"
"""Name of the glossary that comes with the project."""

_FIELD: Final = "field"
_BETWEEN: Final = "|"
_LANGUAGE: Final = re.compile(r"[a-z]{2}")

Concept = Mapping[str, tuple[str, ...]]
"""Terms of one thing by ISO 639-1 language; terms of one language are alternatives."""


@dataclass(frozen=True)
class Glossary:
    """Concepts with their terms, made ready for finding them in texts.

    Attributes:
        concepts: The concepts.
        id: Hash of the files' content; it belongs in a manifest.
    """

    concepts: tuple[Concept, ...]
    id: str

    def find(self, text: str) -> dict[int, frozenset[str]]:
        """Returns the concepts that a text names, each with the languages whose terms it uses.

        The longest term counts where several begin at one place: `解熱薬` is no `熱`. Terms of CJK letters are found
        inside running text; others are whole words, in singular or plural.
        """
        folded_text = folded(text)
        uses = [use for match in self._pattern.finditer(folded_text) for use in self._written[match.group()]]
        uses += self._uses_of_words([singular(token) for token in tokens_of(folded_text)])
        found: dict[int, frozenset[str]] = {}
        for concept, language in uses:
            found[concept] = found.get(concept, frozenset()) | {language}
        return found

    def _uses_of_words(self, words: Sequence[str]) -> list[tuple[int, str]]:
        uses: list[tuple[int, str]] = []
        longest = max(map(len, self._worded), default=0)
        at = 0
        while at < len(words):
            lengths = range(min(longest, len(words) - at), 0, -1)
            taken = next((n for n in lengths if tuple(words[at : at + n]) in self._worded), 0)
            uses += self._worded[tuple(words[at : at + taken])] if taken else []
            at += taken or 1
        return uses

    @functools.cached_property
    def _written(self) -> dict[str, list[tuple[int, str]]]:
        """Uses of each term that holds CJK letters."""
        found: dict[str, list[tuple[int, str]]] = {}
        for number, language, term in self._terms():
            if has_cjk(term):
                found.setdefault(folded(term), []).append((number, language))
        return found

    @functools.cached_property
    def _worded(self) -> dict[tuple[str, ...], list[tuple[int, str]]]:
        """Uses of each term of other letters, by its words."""
        found: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        for number, language, term in self._terms():
            words = tuple(singular(token) for token in tokens_of(term))
            if words and not has_cjk(term):
                found.setdefault(words, []).append((number, language))
        return found

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        # An alternation takes the first that fits, so that longer terms must stand first.
        terms = sorted(self._written, key=lambda term: (-len(term), term))
        return re.compile("|".join(map(re.escape, terms)) or r"(?!)")

    def _terms(self) -> list[tuple[int, str, str]]:
        return [
            (number, language, term)
            for number, concept in enumerate(self.concepts)
            for language, terms in concept.items()
            for term in terms
        ]


def load_glossary(names: Sequence[str]) -> Glossary | None:
    """Returns the glossary of several files, or None where none is named.

    Args:
        names: `shipped`, or CSV files: a header of ISO 639-1 codes (and `field`, for the reader alone), one concept a
            row, alternatives parted by `|`; a language may be left empty.

    Raises:
        DeclarationError: A file cannot be read, or is at fault; the message names file, row and column.
    """
    if not names:
        return None
    paths = [shipped("data", "glossary", "terms.csv") if name == SHIPPED else Path(name).expanduser() for name in names]
    try:
        return _loaded(tuple((path, path.stat().st_mtime_ns) for path in paths))
    except OSError as error:
        raise DeclarationError(
            f"retriever.glossary: {error.filename} cannot be read ({error.strerror}); give a CSV file, {SHIPPED}, or []"
        ) from error


@functools.lru_cache(maxsize=8)
def _loaded(files: tuple[tuple[Path, int], ...]) -> Glossary:
    concepts: list[Concept] = []
    content = hashlib.sha256()
    for path, _ in files:
        raw = path.read_bytes()
        content.update(raw)
        try:
            concepts += _read(path, raw.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise DeclarationError(f"{path}: not UTF-8 (byte {error.start}); save it as UTF-8") from error
    return Glossary(tuple(concepts), content.hexdigest()[:16])


def _read(path: Path, text: str) -> list[Concept]:
    rows = list(csv.reader(text.splitlines()))
    languages = [name.strip() for name in rows[0]] if rows else []
    codes = [name for name in languages if name != _FIELD]
    wrong = [name for name in codes if not _LANGUAGE.fullmatch(name)]
    if wrong or len(codes) < 2 or len(set(codes)) < len(codes):
        raise DeclarationError(
            f"{path}, row 1: {','.join(languages)!r} must name two or more languages by ISO 639-1 codes, such as en,ja"
        )
    concepts: list[Concept] = []
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(languages):
            raise DeclarationError(f"{path}, row {number}: {len(row)} cells, the header has {len(languages)}")
        cells = {name: _split(cell) for name, cell in zip(languages, row, strict=True) if name != _FIELD}
        concept = {name: terms for name, terms in cells.items() if terms}
        if len(concept) < 2:
            raise DeclarationError(f"{path}, row {number}: needs terms in two languages, {','.join(codes)}")
        concepts.append(concept)
    if not concepts:
        raise DeclarationError(f"{path}: holds no concept")
    return concepts


def _split(cell: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in cell.split(_BETWEEN) if part.strip()))
