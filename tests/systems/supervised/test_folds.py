import numpy as np
import pytest

from dspy_mama.core.cases import QAPair
from dspy_mama.systems.supervised.folds import possible_folds, question_groups, stratified_folds


def pair(id, question):
    return QAPair(id, question, "answer")


def test_the_same_question_in_other_spelling_is_one_group():
    groups = question_groups([pair("a", "May I  drive?"), pair("b", "may i drive?"), pair("c", "May I fly?")])
    assert groups[0] == groups[1] != groups[2]


def test_a_name_joins_what_questions_do_not():
    pairs = [pair("s1-en", "one"), pair("s2-en", "two"), pair("s1-ja", "一"), pair("s3-en", "two")]
    groups = question_groups(pairs, ["s1", "s2", "s1", "s3"])
    assert groups[0] == groups[2]
    assert groups[1] == groups[3]
    assert len(set(groups.tolist())) == 2


@pytest.mark.parametrize("seed", range(5))
def test_folds_part_the_rows_keep_groups_and_hold_both_classes(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(30), 2)
    labels = (groups % 4 == 0).astype(np.int64) | (rng.random(60) < 0.1)
    folds = stratified_folds(labels, groups, 5, seed)
    assert sorted(row for _, test in folds for row in test.tolist()) == list(range(60))
    for train, test in folds:
        assert not set(groups[train].tolist()) & set(groups[test].tolist())
        assert set(labels[train].tolist()) == set(labels[test].tolist()) == {0, 1}


def test_no_more_folds_than_questions_of_the_rarer_class():
    groups, labels = np.array([0, 0, 1, 2, 3, 4]), np.array([1, 1, 1, 0, 0, 0])
    assert possible_folds(labels, groups, 5) == 2
