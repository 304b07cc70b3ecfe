from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_mama.core.cases import DOMAINS, Passage
from dspy_mama.retrieval.ranking import Ranking
from dspy_mama.retrieval.snapshot import Scope, Snapshot
from dspy_mama.retrieval.store import IndexHeader
from dspy_mama.settings import RetrieverSettings


def header(chunks: int) -> IndexHeader:
    return IndexHeader("e", 4, "1", "", "c", 1, chunks, "r")


def index(count: int, seed: int, distinct: int) -> tuple[list[Passage], np.ndarray]:
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((distinct, 4))
    vectors = base[rng.integers(0, distinct, count)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    passages = [
        Passage(
            id=f"{n:05}",
            text="t",
            domains=tuple(d for d in DOMAINS if rng.random() < 0.6),
            jurisdiction=str(rng.choice(["JP", "US"])),
            language=str(rng.choice(["en", "ja"])),
            collection=str(rng.choice(["law", "ethics"])),
        )
        for n in range(count)
    ]
    return passages, vectors.astype(np.float32)


def ranked(snapshot, query, min_score=-1.0):
    plain = RetrieverSettings(search="dense", centred=False, min_score=min_score)
    return Ranking(snapshot, plain).ranked(["a query"], [query])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 700), st.integers(0, 99), st.sampled_from([1, 3, 500]), st.integers(1, 700))
def test_the_ranking_equals_a_full_sort_also_with_ties(count, seed, distinct, read):
    passages, vectors = index(count, seed, distinct)
    scope = Scope(jurisdictions=("JP",), languages=("en", "ja"))
    snapshot = Snapshot.of(header(count), passages, vectors, scope)
    query = np.array([1, 0, 0, 0], dtype=np.float32)
    scores = {p.id: float(v[0]) for p, v in zip(snapshot.passages, snapshot.vectors, strict=True)}  # query = first axis
    found = ranked(snapshot, query, 0.0)
    for domain in DOMAINS:
        inside = [p for p in passages if domain in p.domains and p.jurisdiction == "JP" and scores[p.id] >= 0]
        expected = sorted(inside, key=lambda p: (-scores[p.id], p.id))[:read]
        assert [p.id for p in islice(found(domain), read)] == [p.id for p in expected]


@pytest.mark.parametrize(
    ("scope", "field", "value"),
    [
        (Scope(jurisdictions=("US",)), "jurisdiction", "US"),
        (Scope(collections=("ethics",)), "collection", "ethics"),
        (Scope(languages=("ja",)), "language", "ja"),
    ],
)
def test_what_is_out_of_scope_is_not_even_kept(scope, field, value):
    passages, vectors = index(50, 1, 50)
    snapshot = Snapshot.of(header(50), passages, vectors, scope)
    assert {getattr(p, field) for p in snapshot.passages} == {value}
    assert 0 < len(snapshot.passages) < 50


def test_a_domain_reads_only_its_sources_and_the_others_read_all():
    passages, vectors = index(50, 1, 50)
    snapshot = Snapshot.of(header(50), passages, vectors, Scope(), {"legal": ("law",)})
    kinds = {domain: {snapshot.passages[row].collection for row in snapshot.rows[domain]} for domain in DOMAINS}
    assert kinds == {"medical": {"law", "ethics"}, "ethical": {"law", "ethics"}, "legal": {"law"}}


@pytest.mark.parametrize("search", ["dense", "lexical", "hybrid"])
def test_a_scope_without_passages_finds_nothing(search):
    snapshot = Snapshot.of(header(5), *index(5, 1, 5), Scope(jurisdictions=("DE",)))
    ranking = Ranking(snapshot, RetrieverSettings(search=search))
    vectors = [np.ones(4, dtype=np.float32)] if ranking.needs_vectors else []
    assert list(ranking.ranked(["a query"], vectors)("legal")) == []


def test_numpy_1_and_2_rank_alike(monkeypatch):
    passages, vectors = index(300, 7, 300)
    snapshot = Snapshot.of(header(300), passages, vectors, Scope())
    query = vectors[5]
    newer = [(p.id, p.score) for p in ranked(snapshot, query)("legal")]
    monkeypatch.delattr(np, "vecdot", raising=False)
    older = [(p.id, p.score) for p in ranked(snapshot, query)("legal")]
    assert [id for id, _ in older] == [id for id, _ in newer]
    np.testing.assert_allclose([s for _, s in older], [s for _, s in newer], atol=2e-6)
