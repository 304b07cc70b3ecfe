import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.settings import SupervisedSettings, from_mapping
from dspy_mama.systems.supervised import make_learner
from dspy_mama.systems.supervised.features import AnswerLength, Words, is_cjk
from dspy_mama.systems.supervised.learners import balanced_log_loss, best_cut
from systems.supervised.synthetic import WordEmbedder, make_pairs


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=2, max_size=12))
def test_the_fitted_cut_is_the_best_there_is(rows):
    labels = np.array([int(label) for label, _ in rows])
    chances = np.array([chance for _, chance in rows])

    def score(cut):
        return f1_score(labels, chances >= cut, labels=[0, 1], average="macro", zero_division=0)

    others = [0.5, *((np.unique(chances)[1:] + np.unique(chances)[:-1]) / 2)]
    assert score(best_cut(labels, chances)) == pytest.approx(max(score(cut) for cut in others))


def test_a_cut_that_gains_nothing_stays_at_a_half():
    assert best_cut(np.array([0, 0, 1, 1]), np.array([0.1, 0.3, 0.7, 0.9])) == 0.5


def test_the_balanced_loss_counts_both_classes_alike():
    labels, chances = np.array([1] + [0] * 9), np.full(10, 0.1)
    assert balanced_log_loss(labels, chances) == pytest.approx((-np.log(0.1) - np.log(0.9)) / 2)


def test_japanese_is_read_by_characters_and_english_by_words():
    words = Words("answer")
    assert is_cjk("薬を飲んで、よく休んでください。")
    assert not is_cjk("Take the drug アスピリン and rest for some days.")
    assert "薬を" in words.tokens(QAPair("a", "q", "薬を飲む"))
    assert "take rest" in words.tokens(QAPair("a", "q", "Take rest"))


def test_words_of_question_and_answer_are_told_apart_when_separate():
    tokens = Words("separate").tokens(QAPair("a", "rest", "rest"))
    assert tokens == ["q:rest", "a:rest"]


def test_the_length_control_sees_nothing_but_length_and_script():
    one, two = (QAPair(id, "q", text) for id, text in (("a", "abc def"), ("b", "xyz uvw")))
    features = AnswerLength().raw([one, two])
    assert np.array_equal(features[0], features[1])


def test_a_text_is_embedded_once_however_many_folds_there_are():
    from dspy_mama.systems.supervised import cross_validate

    embedder = WordEmbedder()
    cross_validate(make_pairs(30), make_learner(SupervisedSettings(text="separate"), embedder))
    assert len(embedder.embedded) == len(set(embedder.embedded))


def test_sentence_vectors_need_an_embedder():
    with pytest.raises(DeclarationError, match="make_embedder"):
        make_learner(SupervisedSettings())


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "forest"}, "name"),
        ({"folds": 1}, "folds"),
        ({"strengths": []}, "strengths"),
        ({"strengths": [0]}, "strengths"),
        ({"bert": {"learning_rates": []}}, "learning rate"),
        ({"bert": {"inner_share": 0.7}}, "inner_share"),
    ],
)
def test_a_wrong_setting_is_named(values, said):
    with pytest.raises(DeclarationError, match=said):
        from_mapping(SupervisedSettings, values)
