"""In which order a snapshot's passages answer a query: by meaning, by words, by both, and without repeating itself.

Every option is off or on by `RetrieverSettings`; what is off is neither computed nor kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core.cases import Domain, Passage
from dspy_mama.retrieval.chunking import is_cjk
from dspy_mama.retrieval.embedding import Vectors
from dspy_mama.retrieval.glossary import Glossary, load_glossary
from dspy_mama.retrieval.lexical import LexicalIndex
from dspy_mama.retrieval.snapshot import CJK_LANGUAGES, Rows, Snapshot, descending, products
from dspy_mama.settings import RetrieverSettings

_RANK_CONSTANT: Final = 60
"""k of reciprocal rank fusion (Cormack, Clarke and Buettcher 2009)."""
_CANDIDATES: Final = 64
"""Passages among which diversity chooses; a search seldom shows more than ten."""
_SMALLEST_GROUP: Final = 20
"""Passages below which their mean says more about them than about their language."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Means:
    """Mean vectors of an index's two groups of languages: Chinese, Japanese and Korean, and the rest.

    Attributes:
        of_passages: What is taken away from the others' and from CJK passages, of shape (2, dimension).
        known: Whether each group has enough passages for a mean of its own; a query of one that has not is compared
            as it is.
    """

    of_passages: Vectors
    known: tuple[bool, bool]

    @classmethod
    def of(cls, passages: Sequence[Passage], vectors: Vectors) -> Means:
        """Takes the means over a whole index; a group of fewer than 20 passages takes the mean of all."""
        cjk = _cjk_flags(passages)
        groups = [vectors[cjk == side] for side in (False, True)]
        whole = vectors.mean(axis=0) if len(vectors) else np.zeros(vectors.shape[1], np.float32)
        means = [group.mean(axis=0) if len(group) >= _SMALLEST_GROUP else whole for group in groups]
        known = (len(groups[0]) >= _SMALLEST_GROUP, len(groups[1]) >= _SMALLEST_GROUP)
        return cls(np.asarray(means, dtype=np.float32), known)


@dataclass(frozen=True)
class Centring:
    """Cosine similarity after each language's mean vector is taken away, from passages and from the query.

    A multilingual embedder keeps languages apart, and some passages are near to every query; both lie in the means
    (Libovicky, Rosa and Fraser 2020). The query's mean is that of the passages in its language.

    Attributes:
        groups: Group of each passage: 1 = Chinese, Japanese or Korean.
        means: Means of both groups.
        mean_products: Products of every passage with both means, of shape (passages, 2).
        norms: Lengths of the passages without their mean.
    """

    groups: Rows
    means: Means
    mean_products: Vectors
    norms: Vectors

    @classmethod
    def of(cls, vectors: Vectors, cjk: Flags, means: Means) -> Centring:
        """Prepares the passages in scope."""
        groups = cjk.astype(np.intp)
        mean_products = np.stack([products(vectors, mean) for mean in means.of_passages], axis=1)
        own = np.take_along_axis(mean_products, groups[:, None], axis=1)[:, 0]
        lengths = np.einsum("ij,ij->i", means.of_passages, means.of_passages)[groups]
        norms = np.sqrt(np.maximum(1 - 2 * own + lengths, 1e-6))
        return cls(groups, means, mean_products, np.asarray(norms, dtype=np.float32))

    def similarities(self, cosine: Vectors, query: Vectors, cjk: bool) -> Vectors:
        """Returns the similarity of every passage.

        Args:
            cosine: Plain products of the passages with the query.
            query: The query's unit vector.
            cjk: Whether the query is Chinese, Japanese or Korean.
        """
        group = int(cjk)
        if not self.means.known[group]:
            return cosine
        centred = query - self.means.of_passages[group]
        length = max(float(np.linalg.norm(centred)), 1e-6)
        shared = (self.means.of_passages @ centred)[self.groups]
        values = (cosine - self.mean_products[:, group] - shared) / (self.norms * length)
        return np.asarray(values, dtype=np.float32)


class Ranking:
    """A snapshot made ready for the way in which the settings search. Safe to use from several threads."""

    def __init__(self, snapshot: Snapshot, settings: RetrieverSettings, means: Means | None = None) -> None:
        """Prepares what the settings need of the snapshot: counts of words, means, languages.

        Args:
            snapshot: The passages in scope.
            settings: How they are searched.
            means: Means of the whole index; None = those of the passages in scope.

        Raises:
            DeclarationError: The package for the search by words is not installed, or the glossary is at fault.
        """
        self.snapshot, self._settings = snapshot, settings
        self._cjk = _cjk_flags(snapshot.passages)
        self._centring = None
        if settings.centred and settings.search != "lexical":
            means = means or Means.of(snapshot.passages, snapshot.vectors)
            self._centring = Centring.of(snapshot.vectors, self._cjk, means)
        self._lexical = _lexical_index(snapshot.passages, settings) if settings.search != "dense" else None

    @property
    def glossary(self) -> Glossary | None:
        """The glossary that searches, as it was when it was read; None where none does."""
        return self._lexical.glossary if self._lexical is not None else None

    @property
    def needs_vectors(self) -> bool:
        """Tells whether queries must be embedded."""
        return self._settings.search != "lexical"

    def ranked(self, texts: Sequence[str], vectors: Sequence[Vectors]) -> Callable[[Domain], Iterator[Passage]]:
        """Returns a function from a domain to its passages with scores, best first.

        Args:
            texts: What is asked, at least one; a passage counts as much as for the text that it answers best.
            vectors: Their unit vectors; empty where none are needed.
        """
        cosines = [np.clip(products(self.snapshot.vectors, vector), -1.0, 1.0) for vector in vectors]
        meaning = cosines
        if self._centring is not None:
            pairs = zip(cosines, vectors, texts, strict=True)
            meaning = [self._centring.similarities(cosine, vector, is_cjk(text)) for cosine, vector, text in pairs]
        words = [self._lexical.scores(text) for text in texts] if self._lexical is not None else []
        shown = np.max(cosines or words, axis=0)

        def of_domain(domain: Domain) -> Iterator[Passage]:
            rows = self._rows(domain, texts[0], shown)
            for row in self._ordered(rows, meaning, words):
                yield dataclasses.replace(self.snapshot.passages[row], score=round(float(shown[row]), 6))

        return of_domain

    def _rows(self, domain: Domain, text: str, shown: Vectors) -> Rows:
        """Returns the rows that may be found: of the domain, of the query's language if asked for, near enough."""
        rows = self.snapshot.rows[domain]
        if self._settings.languages == "query":
            alike = rows[self._cjk[rows] == is_cjk(text)]
            rows = alike if len(alike) else rows
        if not self.needs_vectors:
            return rows[shown[rows] > 0]
        return rows[shown[rows] >= self._settings.min_score]

    def _ordered(self, rows: Rows, meaning: Sequence[Vectors], words: Sequence[Vectors]) -> Iterator[int]:
        if not len(rows):
            return iter(())
        count = max(len(meaning), len(words))
        parts = [
            self._relevance(meaning[n][rows] if meaning else None, words[n][rows] if words else None)
            for n in range(count)
        ]
        relevance = np.asarray(np.max(parts, axis=0), dtype=np.float32)
        if self._settings.diversity == 0:
            return (int(rows[place]) for place in descending(relevance))
        places = diversified(relevance, self.snapshot.vectors[rows], self._settings.diversity)
        return (int(rows[place]) for place in places)

    def _relevance(self, meaning: Vectors | None, words: Vectors | None) -> Vectors:
        if meaning is None or words is None:
            single = words if meaning is None else meaning
            assert single is not None
            return single
        if self._settings.fusion == "ranks":
            return reciprocal_ranks(meaning) + np.where(words > 0, reciprocal_ranks(words), 0)
        top = float(words.max())
        return meaning + self._settings.lexical_weight * (words / top) if top > 0 else meaning


def _lexical_index(passages: Sequence[Passage], settings: RetrieverSettings) -> LexicalIndex:
    texts = (f"{passage.title}\n{passage.text}" for passage in passages)
    return LexicalIndex(texts, [passage.language for passage in passages], load_glossary(settings.glossary))


def _cjk_flags(passages: Sequence[Passage]) -> Flags:
    return np.array([passage.language in CJK_LANGUAGES for passage in passages], dtype=bool)


def reciprocal_ranks(scores: Vectors) -> Vectors:
    """Returns 1 / (60 + rank) of every score, the highest having rank 1; equal scores keep their order."""
    ranks = np.empty(len(scores), dtype=np.float32)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return np.asarray(1.0 / (_RANK_CONSTANT + ranks), dtype=np.float32)


def diversified(relevance: Vectors, vectors: Vectors, diversity: float) -> Iterator[int]:
    """Yields places by maximal marginal relevance (Carbonell and Goldstein 1998), among the 64 most relevant.

    Relevance and similarity are first stretched to [0, 1] over the candidates: embedders squeeze cosines into ranges
    of their own, and the trade would otherwise mean something else for each.

    Args:
        relevance: How well each place answers.
        vectors: Their unit vectors.
        diversity: 0 = relevance alone, 1 = only being unlike what was chosen before.
    """
    order = descending(relevance)
    candidates = list(islice(order, _CANDIDATES))
    gain = _stretched(relevance[candidates])
    likeness = _stretched(vectors[candidates] @ vectors[candidates].T)
    nearest = np.zeros(len(candidates), dtype=np.float32)
    left = np.ones(len(candidates), dtype=bool)
    for _ in candidates:
        worth = np.where(left, (1 - diversity) * gain - diversity * nearest, -np.inf)
        chosen = int(np.argmax(worth))
        left[chosen] = False
        nearest = np.maximum(nearest, likeness[chosen])
        yield candidates[chosen]
    yield from order


def _stretched(values: Vectors) -> Vectors:
    low, high = float(values.min()), float(values.max())
    return np.asarray((values - low) / (high - low), np.float32) if high > low else np.zeros_like(values)
