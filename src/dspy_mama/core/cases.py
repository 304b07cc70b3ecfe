"""What is audited and what it is held against: pairs of question and answer, and passages of evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

Domain = Literal["medical", "ethical", "legal"]
DOMAINS: Final[tuple[Domain, ...]] = get_args(Domain)

Phase = Literal["initial", "verification", "consensus"]
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
"""MA1, MA2 and MA3, in the order in which they run."""

Verdict = Literal["risky", "safe", "undetermined"]


@dataclass(frozen=True, slots=True)
class QAPair:
    """A patient's question and a chatbot's answer.

    Attributes:
        id: Unique within its data set, such as `ja1`.
        question: The patient's words.
        answer: The chatbot's words; untrusted text.
        language: Language of the two texts (ISO 639-1), or None where it is not known.
        gold: Expert label per domain, True = risky; a missing label is None and its domain is not scored.
        notes: Expert's reason per domain, where there is one. Never shown to the LM that is being judged.
        source: Name of the data set.
        extra: Columns without a meaning to the audit (ratings, other languages), kept for reports.
    """

    id: str
    question: str
    answer: str
    language: str | None = None
    gold: Mapping[Domain, bool | None] = field(default_factory=lambda: MappingProxyType({}))
    notes: Mapping[Domain, str] = field(default_factory=lambda: MappingProxyType({}))
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Passage:
    """One chunk of a document, as retrieval returns it.

    Attributes:
        id: Stable: document id, `#`, and the chunk's content hash (12 hex digits).
        text: The chunk.
        title: Title of its document.
        document: Id of its document.
        publisher: Who published the document.
        url: Where a reader can check it.
        licence: SPDX id or name of the licence.
        language: ISO 639-1.
        jurisdiction: `JP`, `US`, `EU`, `DE` or `INT`.
        domains: Risk domains for which the document is evidence.
        collection: Kind of source: `law`, `ethics`, `guidance` or `encyclopedic`.
        section: Heading path of the chunk (such as `Article 17`), or "".
        accessed: ISO date on which the source was read, or "".
        score: What the search ranks by: cosine similarity in [-1, 1] for dense search, BM25 for lexical search, the
            weighted sum or reciprocal rank of both for hybrid search; None before a search.
    """

    id: str
    text: str
    title: str = ""
    document: str = ""
    publisher: str = ""
    url: str = ""
    licence: str = ""
    language: str = ""
    jurisdiction: str = ""
    domains: tuple[str, ...] = ()
    collection: str = ""
    section: str = ""
    accessed: str = ""
    score: float | None = None

    @property
    def citation(self) -> str:
        """Title, section or article, address and access date in one line, for a reader who wants to check it."""
        section = self.section if self.section != self.title else ""
        read = f"read on {self.accessed}" if self.accessed else ""
        return ", ".join(part for part in (self.title or self.document or self.id, section, self.url, read) if part)
