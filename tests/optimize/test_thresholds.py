import numpy as np
import pytest

from dspy_mama.optimize.thresholds import candidate_cuts, cut_labels, fit_thresholds, target_value
from dspy_mama.scoring import labels_from_arrays


def labels_of(gold, probability, predicted=None):
    columns = [[value, value, value] for value in probability]
    said = np.array(columns) >= 0.5 if predicted is None else [[p, p, p] for p in predicted]
    return labels_from_arrays([[g, g, g] for g in gold], np.asarray(said, dtype=int), columns)


def test_shifted_probabilities_get_the_cut_between_the_classes_in_the_middle_of_the_gap():
    labels = labels_of([0, 0, 0, 1, 1, 1], [0.70, 0.72, 0.80, 0.90, 0.95, 0.97])
    cuts = fit_thresholds(labels)
    assert cuts == pytest.approx(dict.fromkeys(("medical", "ethical", "legal"), 0.85))
    assert target_value(cut_labels(labels, cuts), "average_macro_f1") == 1.0


def test_labels_that_are_right_as_written_get_no_cut():
    assert fit_thresholds(labels_of([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9])) == {}


def test_labels_without_probabilities_get_no_cut():
    labels = labels_of([0, 1], [np.nan, np.nan], predicted=[1, 0])
    assert fit_thresholds(labels) == {}


def test_of_equal_cuts_the_widest_gap_wins():
    # The cut at .45 and the one at .7 err once each: the gap from .6 to .8 is the wider one.
    labels = labels_of([0, 0, 1, 0, 1], [0.30, 0.40, 0.50, 0.60, 0.80], predicted=[1, 1, 1, 1, 1])
    ties = {
        cut: target_value(cut_labels(labels, dict.fromkeys(("medical", "ethical", "legal"), cut)), "average_macro_f1")
        for cut, _ in candidate_cuts(labels.probability[:, 0])
    }
    best = max(ties.values())
    tied = [cut for cut, value in ties.items() if value == best]
    assert fit_thresholds(labels)["medical"] in tied
    assert len(candidate_cuts(np.array([0.2, 0.2, np.nan]))) == 2


def test_a_missing_verdict_counts_as_wrong():
    there = labels_from_arrays([[1, 1, 1], [0, 0, 0]], [[1, 1, 1], [0, 0, 0]])
    gone = labels_from_arrays([[1, 1, 1], [0, 0, 0]], [[1, 1, 1], [-1, -1, -1]])
    assert target_value(there, "joint_accuracy") == 1.0
    assert target_value(gone, "joint_accuracy") == 0.5


def test_a_joint_target_is_raised_over_the_domains_together():
    gold = [[1, 0, 1], [0, 0, 0], [1, 0, 1], [0, 0, 0]]
    probability = [[0.4, 0.6, 0.4], [0.1, 0.6, 0.1], [0.4, 0.6, 0.4], [0.1, 0.6, 0.1]]
    labels = labels_from_arrays(gold, (np.array(probability) >= 0.5).astype(int), probability)
    assert target_value(labels, "joint_accuracy") == 0.0
    cuts = fit_thresholds(labels, "joint_accuracy")
    assert target_value(cut_labels(labels, cuts), "joint_accuracy") >= 0.5
