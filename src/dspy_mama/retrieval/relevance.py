"""Queries with the passages that answer them, and how well a ranking finds those. Pure but for reading the file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.cases import DOMAINS, Domain, Passage
from dspy_mama.core.errors import DeclarationError

CUTOFFS: Final = (1, 4, 10)
"""Ranks at which recall is taken; 4 is the default of `retriever.top_k`."""
DEPTH: Final = 10
"""Ranks that are looked at: for nDCG@10, and for the reciprocal rank, which is 0 beyond."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A place in the corpus: it stays the same however documents are cut.

    Attributes:
        document: Id of the document.
        anchor: A few words that stand in it once.
    """

    document: str
    anchor: str

    def stands_in(self, passage: Passage) -> bool:
        """Tells whether a passage holds it, white space aside."""
        return passage.document == self.document and self.anchor in " ".join(passage.text.split())


@dataclass(frozen=True, slots=True)
class BenchmarkQuery:
    """One query.

    Attributes:
        id: Unique.
        language: ISO 639-1.
        domain: Risk domain in which it is searched.
        jurisdictions: Whose documents are searched.
        question: A patient's question or a question of law, or "".
        answer: A chatbot's statement, or "".
        facts: What a good search finds; of each fact, every place that states it, in any language.
        set: Set of queries that it belongs to; figures are given for each.
    """

    id: str
    language: str
    domain: Domain
    jurisdictions: tuple[str, ...]
    question: str
    answer: str
    facts: tuple[tuple[Statement, ...], ...]
    set: str = ""

    @property
    def text(self) -> str:
        """Question and answer, as far as there are both."""
        return "\n".join(part for part in (self.question, self.answer) if part)

    def in_documents(self, documents: frozenset[str]) -> tuple[tuple[Statement, ...], ...]:
        """Returns the facts that some of the documents state, with the places in those."""
        kept = [tuple(place for place in fact if place.document in documents) for fact in self.facts]
        return tuple(fact for fact in kept if fact)


@dataclass(frozen=True, slots=True)
class Relevance:
    """How well one ranking answers one query; all values lie in [0, 1].

    Attributes:
        recall: Share of the facts that the first 1, 4 and 10 passages state.
        reciprocal_rank: 1 / rank of the first passage that states a fact, 0 where none of the first 10 does.
        ndcg: Normalised discounted cumulative gain at 10; a passage gains 1 if it states a fact, else 0.
    """

    recall: tuple[float, float, float]
    reciprocal_rank: float
    ndcg: float


def answers(facts: Sequence[Sequence[Statement]], passage: Passage) -> bool:
    """Tells whether a passage states any of the facts."""
    return any(place.stands_in(passage) for fact in facts for place in fact)


def measure(facts: Sequence[Sequence[Statement]], ranking: Sequence[Passage], good: int) -> Relevance:
    """Scores a ranking.

    Args:
        facts: What is to be found, at least one.
        ranking: Passages, best first; the first 10 count.
        good: Passages that state a fact, among all that could have been found.
    """
    ranks = [_first_rank(fact, ranking[:DEPTH]) for fact in facts]
    found = [rank for rank in ranks if rank is not None]
    recall = [sum(rank <= cutoff for rank in found) / len(facts) for cutoff in CUTOFFS]
    gained = sum(1 / math.log2(rank + 1) for rank, p in enumerate(ranking[:DEPTH], 1) if answers(facts, p))
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(good, DEPTH) + 1))
    first = min(found, default=None)
    return Relevance(
        (recall[0], recall[1], recall[2]), 1 / first if first else 0.0, min(1.0, gained / ideal) if ideal else 0.0
    )


def _first_rank(fact: Sequence[Statement], ranking: Sequence[Passage]) -> int | None:
    for rank, passage in enumerate(ranking, 1):
        if any(place.stands_in(passage) for place in fact):
            return rank
    return None


def load_queries(path: Path) -> tuple[BenchmarkQuery, ...]:
    """Reads queries, one JSON object a line.

    Raises:
        DeclarationError: The file cannot be read, or a line is at fault; the message names file, line and field.
    """
    try:
        # Not splitlines(): a JSON string may hold U+2028 and its like, which are no line ends here.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DeclarationError(f"{path}: cannot be read ({error}); give a JSON Lines file in UTF-8") from error
    queries: dict[str, BenchmarkQuery] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            query = _query(json.loads(line))
        except json.JSONDecodeError as error:
            raise DeclarationError(f"{path}, line {number}: no JSON ({error.msg})") from error
        except (KeyError, TypeError, ValueError) as error:
            raise DeclarationError(f"{path}, line {number}: {_fault(error)}") from error
        if query.id in queries:
            raise DeclarationError(f"{path}, line {number}: id: {query.id!r} is already taken; give it its own")
        queries[query.id] = query
    if not queries:
        raise DeclarationError(f"{path}: holds no query")
    return tuple(queries.values())


def _query(row: dict[str, Any]) -> BenchmarkQuery:
    if row["domain"] not in DOMAINS:
        raise ValueError(f"domain: {row['domain']!r} must be one of {', '.join(DOMAINS)}")
    facts = tuple(
        tuple(Statement(str(place["document"]), " ".join(str(place["anchor"]).split())) for place in fact)
        for fact in row["facts"]
    )
    query = BenchmarkQuery(
        str(row["id"]),
        str(row["language"]),
        row["domain"],
        tuple(row["jurisdictions"]),
        str(row.get("question") or ""),
        str(row.get("answer") or ""),
        facts,
        str(row.get("set") or ""),
    )
    if not query.text or not facts or not all(facts) or not all(place.anchor for fact in facts for place in fact):
        raise ValueError("needs a question or an answer, and facts with at least one place (document, anchor) each")
    return query


def _fault(error: Exception) -> str:
    return f"{error.args[0]}: missing" if isinstance(error, KeyError) else str(error)
