"""A bilingual glossary: which concepts a text names, and what they are called in other languages.

Words of a Japanese question do not stand in an English document. What stands there are the words for the same things,
so a search by words crosses languages through a list of them (dictionary-based retrieval; Pirkola 1998).
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.csv_text import CsvRow, CsvRowError, read_csv
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.languages import ISO_639_1
from dspy_mama.core.resources import shipped
from dspy_mama.core.wording import counted
from dspy_mama.retrieval.words import folded, has_cjk, singular, tokens_of

SHIPPED: Final = "shipped"
"""Name of the glossary that comes with the project."""

_FIELD: Final = "field"
_BETWEEN: Final = "|"
_MISTAKEN: Final = {"jp": "ja", "cn": "zh", "gr": "el", "ua": "uk", "cz": "cs", "dk": "da"}
"""Countries' codes that are taken for their languages', as far as they are no other language's."""

Concept = Mapping[str, tuple[str, ...]]
"""Terms of one thing by ISO 639-1 language; terms of one language are alternatives."""


@dataclass(frozen=True)
class Glossary:
    """Concepts with their terms, made ready for finding them in texts.

    Attributes:
        concepts: The concepts; none holds all that another one does.
        id: Hash of the files' content as it was read; it belongs in a manifest.
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
            letters = _key(term)
            if isinstance(letters, str):
                found.setdefault(letters, []).append((number, language))
        return found

    @functools.cached_property
    def _worded(self) -> dict[tuple[str, ...], list[tuple[int, str]]]:
        """Uses of each term of other letters, by its words."""
        found: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        for number, language, term in self._terms():
            words = _key(term)
            if isinstance(words, tuple):
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

    A concept whose terms another one holds as well, in every language, is joined to it, so that a row that stands in
    two files, or a file named twice, counts once. A row that repeats another's terms and adds to them replaces it.

    Args:
        names: `shipped`, or CSV files in UTF-8: a header of ISO 639-1 codes (and `field`, for the reader alone), one
            concept a row, alternatives parted by `|`; a language may be left empty.

    Raises:
        DeclarationError: A file cannot be read, or is at fault; the message names file, row and column.
    """
    return _parsed(tuple(_content(name) for name in names)) if names else None


def _content(name: str) -> tuple[str, bytes]:
    try:
        path = shipped("data", "glossary", "terms.csv") if name == SHIPPED else Path(name).expanduser()
        return str(path), path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except (ValueError, RuntimeError) as error:  # a NUL in the name; the home of a user that is not there
        reason = str(error)
    raise DeclarationError(
        f"retriever.glossary: {name or repr(name)} cannot be read ({reason}); name CSV files, {SHIPPED}, or [] for none"
    )


@functools.lru_cache(maxsize=8)
def _parsed(files: tuple[tuple[str, bytes], ...]) -> Glossary:
    """Returns the glossary of files by their content: what a file's time says of it may be wrong."""
    concepts: list[Concept] = []
    content = hashlib.sha256()
    for path, raw in files:
        content.update(raw)
        try:
            concepts += _concepts(path, raw.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise DeclarationError(f"{path}: not UTF-8 (byte {error.start}); save it as UTF-8") from error
        except CsvRowError as fault:
            raise DeclarationError(f"{path}, {fault}") from fault
    return Glossary(_joined(concepts), content.hexdigest()[:16])


def _concepts(path: str, text: str) -> list[Concept]:
    header, rows = _table(path, text)
    codes = [name for name in header if name != _FIELD]
    concepts: list[Concept] = []
    for row in rows:
        if len(row.cells) != len(header):
            found = counted(len(row.cells), "cell")
            raise DeclarationError(
                f"{path}, {row.place}: {found}, the header has {len(header)}; put terms that hold commas in quotes"
            )
        cells = {name: _split(cell) for name, cell in zip(header, row.cells, strict=True) if name != _FIELD}
        # Some terms have no word that is searched, such as `WHO`: that is well as long as others of theirs have.
        concept = {name: terms for name, terms in cells.items() if any(map(_key, terms))}
        if len(concept) < 2:
            raise DeclarationError(
                f"{path}, {row.place}: needs terms in two languages, {','.join(codes)}, with a word to search in each"
            )
        concepts.append(concept)
    if not concepts:
        raise DeclarationError(f"{path}: holds no concept; write one a row below the header")
    return concepts


def _table(path: str, text: str) -> tuple[list[str], list[CsvRow]]:
    """Returns the languages of the columns and the rows that are not blank."""
    rows = list(read_csv(text))
    header = [name.strip() for name in rows[0].cells] if rows else []
    codes = [name for name in header if name != _FIELD]
    problem = next((_problem(name) for name in codes if name not in ISO_639_1), None)
    if problem is None and len(set(header)) < len(header):
        problem = "a column stands twice"
    if problem is None and len(codes) < 2:
        problem = f"there is only {codes[0]}" if codes else "there is none"
    if problem is not None:
        raise DeclarationError(
            f"{path}, row 1: {','.join(header)!r} must name two or more languages by ISO 639-1 codes, parted by "
            f"commas, such as en,ja: {problem}"
        )
    return header, [row for row in rows[1:] if any(cell.strip() for cell in row.cells)]


def _problem(name: str) -> str:
    meant = name.lower()
    meant = _MISTAKEN.get(meant, meant)
    return f"{name!r} is no such code" + (f"; do you mean {meant}?" if meant in ISO_639_1 else "")


def _split(cell: str) -> tuple[str, ...]:
    # A line break inside a cell is a blank: `fever<newline>reducer` is one term.
    return tuple(dict.fromkeys(" ".join(part.split()) for part in cell.split(_BETWEEN) if part.strip()))


def _key(term: str) -> str | tuple[str, ...]:
    """Returns what a term is found by: its letters where they are CJK, else its words in singular."""
    return folded(term) if has_cjk(term) else tuple(singular(token) for token in tokens_of(term))


def _joined(concepts: Sequence[Concept]) -> tuple[Concept, ...]:
    """Leaves out each concept whose terms another one holds, in every language; of equal ones, the first stays."""
    keys = [
        {(name, _key(term)) for name, terms in concept.items() for term in terms if _key(term)} for concept in concepts
    ]
    holders: dict[tuple[str, Any], set[int]] = {}
    for number, own in enumerate(keys):
        for key in own:
            holders.setdefault(key, set()).add(number)

    def is_held(number: int) -> bool:
        others = set.intersection(*(holders[key] for key in keys[number])) - {number}
        return any(len(keys[other]) > len(keys[number]) or other < number for other in others)

    return tuple(concept for number, concept in enumerate(concepts) if not is_held(number))
