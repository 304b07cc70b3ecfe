"""What judges a pair saw neither it, nor its question, in any fit, choice or cut.

Invariants:
1. No fit (of a vocabulary, a scaler, a regression; outer or inner) is given a pair that is held out, or its question.
2. A held-out pair's text moves no number of the classifier that judges its fold.
3. A held-out pair's label moves none either.
"""

from dataclasses import replace

import numpy as np
import pytest

from dspy_mama.settings import SupervisedSettings
from dspy_mama.systems.supervised import cross_validate, crossval, make_learner
from dspy_mama.systems.supervised.features import Words
from dspy_mama.systems.supervised.learners import LogisticLearner
from systems.supervised.synthetic import WordEmbedder, make_pairs

LINEAR = ["embedding", "tfidf", "length"]


def learner(name):
    return make_learner(SupervisedSettings(name=name, text="answer", cut="fitted"), WordEmbedder())


class RecordingWords(Words):
    """Keeps which pairs each fit was given."""

    def __init__(self):
        super().__init__("pair")
        self.fits = []

    def fit(self, pairs):
        self.fits.append({pair.id for pair in pairs})
        return super().fit(pairs)


def test_no_fit_is_given_a_held_out_pair_or_its_question():
    pairs, features = make_pairs(36, per_question=2), RecordingWords()
    parts = []

    class Recording(LogisticLearner):
        def fit(self, given, labels, groups, seed):
            features.fits.clear()
            fitted = super().fit(given, labels, groups, seed)
            parts.append((fitted, [set(ids) for ids in features.fits]))
            return fitted

    model = Recording("words", features, strengths=(0.1, 1.0), inner_folds=3, cut="fitted")
    found = cross_validate(pairs, model, folds=4)
    questions = {pair.id: pair.question for pair in pairs}
    begun = 0
    for domain in ("medical", "ethical"):
        own = found.domains[domain]
        for fold in range(own.folds):
            held_out = {pair.id for pair, home in zip(pairs, own.fold, strict=True) if home == fold}
            asked = {questions[id] for id in held_out}
            fits = parts[begun + fold][1]
            assert len(fits) == 3 + 1  # inner folds, and the fit on all that may be learnt from
            for seen in fits:
                assert not seen & held_out
                assert not {questions[id] for id in seen} & asked
        begun += own.folds


def test_a_word_that_only_a_held_out_pair_has_is_in_no_vocabulary_that_judges_it():
    pairs = make_pairs(30)
    pairs[6] = replace(pairs[6], answer=pairs[6].answer + " zzplanted")
    model = learner("tfidf")
    vocabularies = []
    plain = model.fit

    def watch(given, labels, groups, seed):
        fitted = plain(given, labels, groups, seed)
        transform = fitted.model[0]
        names = transform.__closure__[0].cell_contents.vocabulary_
        vocabularies.append(("zzplanted" in names, "p6" in {pair.id for pair in given}))
        return fitted

    model.fit = watch
    cross_validate(pairs, model)
    assert {known == taught for known, taught in vocabularies} == {True}
    assert {known for known, _ in vocabularies} == {True, False}


@pytest.mark.parametrize("name", LINEAR)
def test_the_text_of_a_held_out_pair_moves_nothing_in_its_fold(name):
    pairs = make_pairs(40, seed=3)
    changed = [*pairs]
    changed[9] = replace(pairs[9], answer="hazard " * 60 + "outlandish words of enormous number")
    one, two = (cross_validate(given, learner(name)).domains["medical"] for given in (pairs, changed))
    assert np.array_equal(one.fold, two.fold)
    fold = one.fold[9]
    beside = (one.fold == fold) & (np.arange(40) != 9)
    assert one.facts[fold] == two.facts[fold]
    assert np.array_equal(one.probability[beside], two.probability[beside])
    assert np.array_equal(one.risky[beside], two.risky[beside])
    elsewhere = one.fold != fold  # the pair does teach the other folds, so this test could see a leak
    assert not np.array_equal(one.probability[elsewhere], two.probability[elsewhere])


@pytest.mark.parametrize("name", LINEAR)
def test_the_label_of_a_held_out_pair_moves_nothing_in_its_fold(name, monkeypatch):
    pairs = make_pairs(40, seed=4)
    rows = np.arange(40)
    kept = [(rows[rows % 4 != fold], rows[rows % 4 == fold]) for fold in range(4)]
    monkeypatch.setattr(crossval, "stratified_folds", lambda *given: kept)
    flipped = [*pairs]
    flipped[10] = replace(pairs[10], gold={**pairs[10].gold, "medical": not pairs[10].gold["medical"]})
    one, two = (cross_validate(given, learner(name), folds=4).domains["medical"] for given in (pairs, flipped))
    own = one.fold == 2
    assert np.array_equal(one.probability[own], two.probability[own])
    assert one.facts[2] == two.facts[2]
    assert not np.array_equal(one.probability[~own], two.probability[~own])
