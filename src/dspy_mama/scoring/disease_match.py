"""Whether two names mean the same disease, by spelling and dictionary alone: a cheap check on an LM that grades."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

from dspy_mama.core.disease_names import normalise_disease

FUZZY: Final = 0.92
"""Likeness from which two names are one: a slip of the pen in a name of three words lies above, another type below."""

MatchKind = Literal["exact", "synonym", "fuzzy", "none"]

_BRACKETS: Final = re.compile(r"[(\[]([^()\[\]]{2,})[)\]]")
_DIGITS: Final = re.compile(r"\d+|\b[a-z]\b")


@dataclass(frozen=True, slots=True)
class Match:
    """How alike the truth and the closest of some answers are.

    Attributes:
        kind: `exact` (same normal form), `synonym` (joined by the dictionary, or by what stands in brackets), `fuzzy`
            (nearly the same letters, and the same numbers and single letters), `none`.
        likeness: Share of letters in common of the closest answer, in [0, 1].
        answer: The closest answer, or None where there is none.
    """

    kind: MatchKind
    likeness: float
    answer: str | None = None

    @property
    def same(self) -> bool:
        """Whether the names mean the same disease."""
        return self.kind != "none"


def synonym_table(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns each normal form's representative, from pairs of names that mean the same.

    Args:
        pairs: Name and synonym; chains are followed.
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for name, synonym in pairs:
        one, two = root(normalise_disease(name)), root(normalise_disease(synonym))
        if one and two:
            parent[two] = one
    return {name: root(name) for name in list(parent)}


def _forms(name: str) -> set[str]:
    """Returns the normal forms of a name: the whole, and what stands in brackets (an abbreviation, another name)."""
    return {form for form in map(normalise_disease, (name, *_BRACKETS.findall(name))) if form}


def _likeness(one: str, two: str) -> float:
    left, right = (" ".join(sorted(text.split())) for text in (one, two))
    return float(SequenceMatcher(None, left, right, autojunk=False).ratio())


def match_disease(truth: str, answers: Sequence[str], synonyms: Mapping[str, str] | None = None) -> Match:
    """Compares the true diagnosis with the closest of some answers.

    Args:
        truth: The true diagnosis.
        answers: What was answered; untrusted.
        synonyms: What `synonym_table` made of a dictionary.
    """
    ranks = {"exact": 3, "synonym": 2, "fuzzy": 1, "none": 0}
    found = [_match(truth, answer, synonyms or {}) for answer in answers]
    return max(found, key=lambda match: (ranks[match.kind], match.likeness), default=Match("none", 0.0))


def _match(truth: str, answer: str, synonyms: Mapping[str, str]) -> Match:
    one, two = normalise_disease(truth), normalise_disease(answer)
    if not one or not two:
        return Match("none", 0.0, answer)
    if one == two:
        return Match("exact", 1.0, answer)
    left, right = ({synonyms.get(form, form) for form in _forms(name)} for name in (truth, answer))
    likeness = _likeness(one, two)
    if left & right:
        return Match("synonym", likeness, answer)
    # Type 1 is not type 2, and hemophilia A is not B, however alike the letters are.
    alike = likeness >= FUZZY and sorted(_DIGITS.findall(one)) == sorted(_DIGITS.findall(two))
    return Match("fuzzy" if alike else "none", likeness, answer)
