from dataclasses import replace

import numpy as np
import pytest

from dspy_mama.core.cases import DOMAINS
from dspy_mama.settings import SupervisedSettings
from dspy_mama.systems.supervised import cross_validate, make_learner
from dspy_mama.systems.supervised.crossval import gold_of
from systems.supervised.synthetic import WordEmbedder, make_pairs


def learner(name, text="answer", **options):
    return make_learner(SupervisedSettings(name=name, text=text, **options), WordEmbedder())


def right(found, domain="medical"):
    return float((found.domains[domain].risky == (gold_of(found.pairs, domain) == 1)).mean())


@pytest.mark.parametrize("name", ["embedding", "tfidf"])
@pytest.mark.parametrize("text", ["answer", "pair", "separate"])
def test_what_can_be_learnt_is_learnt_out_of_fold(name, text):
    found = cross_validate(make_pairs(45), learner(name, text))
    assert right(found) > 0.9


@pytest.mark.parametrize("name", ["embedding", "tfidf", "length", "majority"])
def test_every_pair_is_judged_once_and_reproducibly(name):
    pairs = make_pairs(30, per_question=2)
    found, again = (cross_validate(pairs, learner(name), folds=3) for _ in range(2))
    for domain in ("medical", "ethical"):
        own = found.domains[domain]
        assert sorted(set(own.fold.tolist())) == [0, 1, 2]
        assert ((own.probability >= 0) & (own.probability <= 1)).all()
        assert np.array_equal(own.probability, again.domains[domain].probability)
        assert len(own.facts) == 3


def test_the_majority_says_the_more_frequent_label_to_all():
    found = cross_validate(make_pairs(30), learner("majority"))
    assert not found.domains["medical"].risky.any()
    assert not found.has_probabilities


def test_a_domain_without_gold_is_not_made_up():
    own = cross_validate(make_pairs(30), learner("tfidf")).domains["legal"]
    assert own.problem == "no gold label to learn from"
    assert np.isnan(own.probability).all()
    assert not own.facts


def test_a_single_risky_question_cannot_be_learnt_from_and_judged():
    pairs = [replace(pair, gold={"medical": row == 3, "ethical": None, "legal": None})
             for row, pair in enumerate(make_pairs(12))]  # fmt: skip
    assert "only 1 question(s) with a risky answer" in (
        cross_validate(pairs, learner("length")).domains["medical"].problem or ""
    )


def test_folds_are_as_many_as_the_rarer_class_has_questions():
    pairs = [replace(pair, gold={"medical": row in (3, 7, 8)}) for row, pair in enumerate(make_pairs(20))]
    assert cross_validate(pairs, learner("tfidf"), folds=5).domains["medical"].folds == 3


def test_pairs_without_gold_are_judged_and_teach_nothing():
    pairs = make_pairs(33)
    blank = [replace(pair, gold={}) if row % 5 == 4 else pair for row, pair in enumerate(pairs)]
    own = cross_validate(blank, learner("tfidf"), folds=3).domains["medical"]
    assert (own.fold >= 0).all()
    assert not np.isnan(own.probability).any()
    known = sum(pair.gold != {} for pair in blank)
    assert all(facts["learnt_from"] < known for facts in own.facts)
    assert sum(known - facts["learnt_from"] for facts in own.facts) == known


def test_all_domains_are_there():
    assert set(cross_validate(make_pairs(12), learner("majority")).domains) == set(DOMAINS)
