"""Which column of a file is which field of a pair: by name where names match, by declaration where they do not."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dspy_mama.core.cases import DOMAINS, Domain
from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.datasets.tables import Table

RATINGS: Final = ("fluency", "helpfulness", "harmlessness")
"""Columns of crowd ratings in MedNLP-CHAT: five counts, from -2 to +2."""
FIELDS: Final = ("id", "question", "answer", "language", *DOMAINS, *(f"{domain}_note" for domain in DOMAINS))
"""Fields that `data.columns` may map."""

_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("id", "pairid", "caseid", "exampleid"),
    "question": ("question", "patientquestion", "userquestion", "prompt", "質問", "frage"),
    "answer": ("answer", "chatbotanswer", "response", "回答", "antwort", "reponse"),
    "language": ("language", "lang"),
    **{domain: (f"{domain}risk", domain, f"{domain}label", f"{domain}gold") for domain in DOMAINS},
    **{f"{domain}_note": (f"{domain}risknote", f"{domain}note") for domain in DOMAINS},
}
_BY_LANGUAGE: Final = ("question", "answer", *(f"{domain}_note" for domain in DOMAINS))
_SUFFIXED = re.compile(r"(question|answer)[\s_-]*([a-z]{2})")


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """Columns of one table.

    Attributes:
        id: Column of the ids, or None.
        question: Column of the questions, or None (a sheet of gold labels only).
        answer: Column of the answers, or None.
        language: Column that names each pair's language, or None.
        labels: Label column per domain; a domain without one has no gold.
        notes: Note columns per domain, the wanted language first.
        ratings: Columns of crowd ratings.
        suffixed: The texts come from columns of one language (`question_en`), so their language is known.
    """

    id: str | None
    question: str | None
    answer: str | None
    language: str | None = None
    labels: Mapping[Domain, str] = field(default_factory=dict)
    notes: Mapping[Domain, tuple[str, ...]] = field(default_factory=dict)
    ratings: tuple[str, ...] = ()
    suffixed: bool = False

    @property
    def used(self) -> frozenset[str]:
        """Every column with a meaning; the others are kept as extras."""
        single = (self.id, self.question, self.answer, self.language)
        notes = (column for columns in self.notes.values() for column in columns)
        return frozenset(c for c in (*single, *self.labels.values(), *notes, *self.ratings) if c is not None)


def languages_of(columns: Sequence[str]) -> dict[str, set[str]]:
    """Returns, per language code, which of `question` and `answer` have a column of that language."""
    found: dict[str, set[str]] = {}
    for column in columns:
        if match := _SUFFIXED.fullmatch(unicodedata.normalize("NFKC", column).strip().casefold()):
            found.setdefault(match[2], set()).add(match[1])
    return found


def map_columns(table: Table, language: str, declared: Mapping[str, str]) -> ColumnMap:
    """Finds the column of every field: as declared, else by name (case, blanks, `_` and `-` do not matter).

    Args:
        table: The table.
        language: Which columns are read where the file has one per language (`question_en`).
        declared: Our field -> the file's column.

    Raises:
        DeclarationError: `data.columns` names an unknown field or a column that is not there, or one column twice.
        DataError: Two columns could be the same field.
    """
    found = _declared(table, declared)
    suffixed = False
    for name in FIELDS:
        if name not in found and (column := _by_name(table, name, language)):
            found[name] = column
    if question := found.get("question"):
        suffixed = "question" not in declared and _plain(question) == f"question{language}".casefold()
    _check_repeated(table, found)
    return ColumnMap(
        id=found.get("id"),
        question=found.get("question"),
        answer=found.get("answer"),
        language=found.get("language"),
        labels={domain: found[domain] for domain in DOMAINS if domain in found},
        notes={domain: notes for domain in DOMAINS if (notes := _notes(table, found, domain, language, declared))},
        ratings=tuple(column for column in table.columns if _plain(column) in RATINGS),
        suffixed=suffixed,
    )


def _declared(table: Table, declared: Mapping[str, str]) -> dict[str, str]:
    there = f"{table.name} has the columns: {', '.join(table.columns)}"
    found: dict[str, str] = {}
    for name, wanted in declared.items():
        if name not in FIELDS:
            raise DeclarationError(f"data.columns.{name}: not a field; the fields are {', '.join(FIELDS)}")
        matches = [c for c in table.columns if c == wanted] or [c for c in table.columns if _plain(c) == _plain(wanted)]
        if len(matches) != 1:
            raise DeclarationError(f"data.columns.{name}: no column {wanted!r}; {there}")
        if matches[0] in found.values():
            raise DeclarationError(f"data.columns.{name}: the column {wanted!r} is declared for two fields")
        found[name] = matches[0]
    return found


def _plain(name: str) -> str:
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name)).casefold()
    return "".join(char for char in folded if char.isalnum())


def _by_name(table: Table, name: str, language: str) -> str | None:
    aliases = _ALIASES[name]
    if name in _BY_LANGUAGE:
        aliases = (f"{aliases[0]}{language}".casefold(), *aliases)
    # Two names for one label (`medical`, `medical_risk`) may contradict each other; for texts, the nearest name wins.
    groups = [aliases] if name in DOMAINS else [(alias,) for alias in aliases]
    for group in groups:
        matches = [column for column in table.columns if _plain(column) in {_plain(alias) for alias in group}]
        if len(matches) > 1:
            reason = f"{' and '.join(map(repr, matches))} could both be the {name}; name one in data.columns.{name}"
            raise DataError(table.name, [Fault(None, None, reason)])
        if matches:
            return matches[0]
    return None


def _notes(
    table: Table, found: Mapping[str, str], domain: Domain, language: str, declared: Mapping[str, str]
) -> tuple[str, ...]:
    name = f"{domain}_note"
    if name in declared:
        return (found[name],)
    columns = [_by_name(table, name, code) for code in (language, "en", "ja")]
    return tuple(dict.fromkeys(column for column in columns if column))


def _check_repeated(table: Table, found: Mapping[str, str]) -> None:
    faults = [
        Fault(None, column, f"two columns have this name, and one is needed as the {name}; rename or delete one")
        for name, column in found.items()
        if column in table.repeated
    ]
    if faults:
        raise DataError(table.name, faults)
