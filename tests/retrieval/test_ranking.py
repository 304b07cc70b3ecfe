import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_mama.core.cases import Passage
from dspy_mama.core.errors import DeclarationError
from dspy_mama.retrieval.ranking import Centring, Means, Ranking, diversified, reciprocal_ranks
from dspy_mama.retrieval.snapshot import Scope, Snapshot
from dspy_mama.retrieval.store import IndexHeader
from dspy_mama.settings import RetrieverSettings, from_mapping

TEXTS = {
    "a": ("en", "Bleeding gums and bruises under warfarin treatment at home", (1.0, 0.0, 0.0)),
    "b": ("en", "Honey for infants", (0.8, 0.6, 0.0)),
    "c": ("en", "Warfarin warfarin interactions", (0.6, 0.8, 0.0)),
    "d": ("ja", "ワルファリンと出血", (0.0, 0.0, 1.0)),
}


def unit(values):
    vectors = np.asarray(values, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def snapshot_of(texts=TEXTS):
    passages = [
        Passage(id=id, text=text, language=language, domains=("medical",)) for id, (language, text, _) in texts.items()
    ]
    vectors = unit([vector for _, _, vector in texts.values()])
    return Snapshot.of(
        IndexHeader("e", vectors.shape[1], "1", "", "c", 1, len(passages), "r"), passages, vectors, Scope()
    )


def order(settings, texts=("warfarin",), vectors=((1.0, 0.0, 0.0),)):
    ranking = Ranking(snapshot_of(), settings)
    given = [unit(v) for v in vectors] if ranking.needs_vectors else []
    return [passage.id for passage in ranking.ranked(texts, given)("medical")]


DENSE = RetrieverSettings(search="dense", centred=False)
HYBRID = RetrieverSettings(search="hybrid", centred=False, glossary=())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"search": "dense"}, ["a", "b", "c", "d"]),
        ({"search": "lexical"}, ["c", "a"]),
        ({"lexical_weight": 0.0}, ["a", "b", "c", "d"]),
        ({"lexical_weight": 1.0}, ["c", "a", "b", "d"]),
        ({"lexical_weight": 0.3}, ["a", "c", "b", "d"]),
        ({"fusion": "ranks"}, ["a", "c", "b", "d"]),
        ({"search": "lexical", "glossary": ("shipped",)}, ["d", "c", "a"]),
        ({"min_score": 0.7}, ["a", "b"]),
        ({"languages": "query", "search": "dense"}, ["a", "b", "c"]),
    ],
)
def test_each_way_of_searching_has_its_own_order(changes, expected):
    assert order(dataclasses.replace(HYBRID, **changes)) == expected


def test_words_without_a_match_leave_the_order_to_meaning():
    assert order(HYBRID, texts=("zebra",)) == order(DENSE)
    assert order(dataclasses.replace(HYBRID, search="lexical"), texts=("zebra",)) == []


def test_a_japanese_query_finds_japanese_words_and_only_its_language_if_asked():
    lexical = dataclasses.replace(HYBRID, search="lexical")
    assert order(lexical, texts=("ワルファリンを飲んでいます",)) == ["d"]
    assert order(dataclasses.replace(DENSE, languages="query"), texts=("薬を飲む",)) == ["d"]
    ranking = Ranking(
        snapshot_of({k: v for k, v in TEXTS.items() if k != "d"}), dataclasses.replace(DENSE, languages="query")
    )
    assert len(list(ranking.ranked(["薬を飲む"], [unit((1.0, 0, 0))])("medical"))) == 3  # none in Japanese: all


def test_of_several_queries_the_best_match_of_a_passage_counts():
    both = order(DENSE, texts=("one", "two"), vectors=((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
    assert both[:2] == ["a", "d"]
    assert order(HYBRID, texts=("honey", "出血"), vectors=((0.8, 0.6, 0.0), (0.0, 0.0, 1.0)))[:2] == ["b", "d"]


def test_scores_are_the_cosine_whatever_the_order():
    for options in (DENSE, HYBRID, dataclasses.replace(HYBRID, fusion="ranks", centred=True, diversity=0.5)):
        found = Ranking(snapshot_of(), options).ranked(["warfarin"], [unit((1.0, 0.0, 0.0))])("medical")
        assert {p.id: p.score for p in found} == pytest.approx({"a": 1.0, "b": 0.8, "c": 0.6, "d": 0.0}, abs=1e-6)


def test_ranks_count_from_one_and_equal_scores_keep_their_order():
    ranks = reciprocal_ranks(np.array([0.1, 0.9, 0.1, 0.5], dtype=np.float32))
    np.testing.assert_allclose(1 / ranks - 60, [3, 1, 4, 2], atol=1e-3)


def bilingual(seed, count=60, dimension=8, gap=3.0):
    """Pairs of passages with one meaning in two languages that lie apart; English ones first."""
    rng = np.random.default_rng(seed)
    meanings = rng.standard_normal((count, dimension))
    shift = rng.standard_normal((2, dimension)) * gap
    noise = rng.standard_normal((2, count, dimension)) * 0.1
    vectors = unit(np.concatenate([meanings + shift[0] + noise[0], meanings + shift[1] + noise[1]]))
    return vectors, np.repeat([False, True], count)


@pytest.mark.parametrize("seed", range(3))
def test_centring_lets_a_query_find_its_meaning_in_the_other_language(seed):
    vectors, cjk = bilingual(seed)
    passages = [Passage(id=str(n), text="t", language="ja" if flag else "en") for n, flag in enumerate(cjk)]
    means = Means.of(passages, vectors)
    centring = Centring.of(vectors, cjk, means)
    hits = {"plain": 0, "centred": 0}
    for n in range(60):
        query = vectors[60 + n]
        cosine = vectors @ query
        hits["plain"] += int(np.argmax(cosine[:60])) == n
        hits["centred"] += int(np.argmax(centring.similarities(cosine, query, cjk=True)[:60])) == n
    assert hits["centred"] > 1.2 * hits["plain"]


def test_centred_similarity_is_the_cosine_of_vectors_less_their_means():
    vectors, cjk = bilingual(7)
    passages = [Passage(id=str(n), text="t", language="ja" if flag else "en") for n, flag in enumerate(cjk)]
    means = Means.of(passages, vectors)
    less = unit(vectors - np.stack([vectors[cjk == flag].mean(0) for flag in cjk]))
    query = unit(vectors[3] + 0.1)
    for side in (False, True):
        wanted = less @ unit(query - vectors[cjk == side].mean(0))
        seen = Centring.of(vectors, cjk, means).similarities(vectors @ query, query, cjk=side)
        np.testing.assert_allclose(seen, wanted, atol=1e-4)


def test_too_few_passages_of_a_language_have_no_mean_of_their_own():
    vectors, cjk = bilingual(1)
    keep = np.r_[:60, 60:65]
    passages = [Passage(id=str(n), text="t", language="ja" if cjk[n] else "en") for n in keep]
    means = Means.of(passages, vectors[keep])
    assert means.known == (True, False)
    np.testing.assert_allclose(means.of_passages[1], vectors[keep].mean(0), atol=1e-6)
    cosine = vectors[keep] @ vectors[60]
    seen = Centring.of(vectors[keep], cjk[keep], means).similarities(cosine, vectors[60], cjk=True)
    np.testing.assert_array_equal(seen, cosine)


def test_diversity_takes_something_else_before_a_near_copy():
    vectors = unit([(1, 0.05, 0), (1, 0.06, 0), (1, 0.07, 0), (0.7, 0, 0.7)])
    relevance = np.array([0.9, 0.89, 0.88, 0.6], dtype=np.float32)
    assert list(diversified(relevance, vectors, 0.1))[:2] == [0, 1]
    assert list(diversified(relevance, vectors, 0.6))[:2] == [0, 3]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(0, 99), st.sampled_from([0.0, 0.3, 1.0]))
def test_diversity_loses_and_repeats_nothing_and_begins_with_the_best(count, seed, diversity):
    rng = np.random.default_rng(seed)
    relevance = rng.random(count).astype(np.float32)
    places = list(diversified(relevance, unit(rng.standard_normal((count, 5))), diversity))
    assert sorted(places) == list(range(count))
    if diversity < 1:
        assert places[0] == int(np.argmax(relevance))
    if diversity == 0:
        assert places == list(np.argsort(-relevance, kind="stable"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"search": "semantic"},
        {"fusion": "sum"},
        {"lexical_weight": 2},
        {"diversity": -0.1},
        {"languages": "ja"},
        {"sources": {"legal": ["blogs"]}},
        {"sources": {"fiscal": ["law"]}},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(DeclarationError, match=next(iter(wrong))):
        from_mapping(RetrieverSettings, wrong)


def test_without_the_package_search_by_words_says_what_to_do(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(DeclarationError, match="pip install bm25s"):
        Ranking(snapshot_of(), HYBRID)
    assert Ranking(snapshot_of(), DENSE).needs_vectors
