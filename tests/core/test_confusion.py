"""The formulas equal scikit-learn's and give the published figures."""

import warnings

import numpy as np
import pytest
from sklearn import metrics as sk

from dspy_mama.core.confusion import confusion_codes, confusion_counts, confusion_metrics, one_class
from dspy_mama.core.probabilities import probability_metrics

# (tp, fp, fn, tn) of n = 126 and the figures printed for them: macro F1, macro precision, macro recall.
PUBLISHED = {
    "rag consensus medical": ((47, 37, 4, 38), 0.673, 0.732, 0.714),
    "rag consensus ethical": ((7, 2, 1, 116), 0.905, 0.885, 0.929),
    "rag consensus legal": ((11, 3, 7, 105), 0.821, 0.862, 0.792),
    "ma consensus medical": ((40, 30, 11, 45), 0.674, None, None),
    "ma consensus legal": ((12, 3, 6, 105), 0.843, None, None),
    "ma consensus ethical": ((4, 1, 4, 117), 0.797, None, None),
    "rag initial medical": ((21, 14, 30, 61), None, 0.635, 0.613),
    "rag initial ethical": ((4, 28, 4, 90), None, 0.541, 0.631),
    "rag initial legal": ((6, 16, 12, 92), None, 0.579, 0.593),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_tables_give_their_printed_figures(name):
    counts, f1, precision, recall = PUBLISHED[name]
    assert sum(counts) == 126
    values = confusion_metrics(np.array(counts))
    for metric, printed in (("macro_f1", f1), ("precision", precision), ("recall", recall)):
        if printed is not None:
            assert round(float(values[metric]), 3) == printed


def test_published_average_is_the_mean_of_the_three_domains():
    rag = np.array([PUBLISHED[f"rag consensus {domain}"][0] for domain in ("medical", "ethical", "legal")])
    ma = np.array([PUBLISHED[f"ma consensus {domain}"][0] for domain in ("medical", "ethical", "legal")])
    assert round(float(confusion_metrics(rag)["macro_f1"].mean()), 3) == 0.800
    assert round(float(confusion_metrics(ma)["macro_f1"].mean()), 3) == 0.771
    assert confusion_metrics(rag)["accuracy"].round(3).tolist() == [0.675, 0.976, 0.921]


def test_always_safe_baseline_of_the_paper():
    values = confusion_metrics(np.array([[0, 0, 51, 75], [0, 0, 8, 118], [0, 0, 18, 108]]))
    assert values["accuracy"].round(3).tolist() == [0.595, 0.937, 0.857]
    assert values["macro_f1"].round(3).tolist() == [0.373, 0.484, 0.462]


def random_labels(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6)) if seed % 3 == 0 else int(rng.integers(6, 130))
    share, said = rng.choice([0.0, 0.05, 0.5, 1.0]), rng.choice([0.0, 0.3, 0.7, 1.0])
    return (rng.random(n) < share), (rng.random(n) < said), rng.choice([0.0, 0.1, 0.25, 0.5, 0.9, 1.0], n)


@pytest.mark.parametrize("start", range(0, 1000, 125))
def test_every_metric_equals_scikit_learn(start):
    options = {"labels": [False, True], "zero_division": 0}
    for seed in range(start, start + 125):
        gold, said, _ = random_labels(seed)
        values = confusion_metrics(
            confusion_counts(confusion_codes(gold.astype(np.int8), said.astype(np.int8))[:, None])[0]
        )
        assert values["accuracy"] == pytest.approx(sk.accuracy_score(gold, said))
        for name, score in (("macro_f1", sk.f1_score), ("precision", sk.precision_score), ("recall", sk.recall_score)):
            assert values[name] == pytest.approx(score(gold, said, average="macro", **options)), (seed, name)
        for part, score in (("f1", sk.f1_score), ("precision", sk.precision_score), ("recall", sk.recall_score)):
            safe, risky = score(gold, said, average=None, **options)
            assert [values[f"{part}_safe"], values[f"{part}_risky"]] == pytest.approx([safe, risky]), (seed, part)


@pytest.mark.parametrize("start", range(0, 1000, 125))
def test_probability_metrics_equal_scikit_learn_with_ties_and_weights(start):
    for seed in range(start, start + 125):
        gold, _, probability = random_labels(seed)
        weights = np.random.default_rng(seed).integers(0, 3, len(gold)).astype(float)
        repeated = np.repeat(np.arange(len(gold)), weights.astype(int))
        for given, rows in ((None, np.arange(len(gold))), (weights, repeated)):
            values = probability_metrics(gold, probability, given)
            both, some = len(set(gold[rows])) == 2, gold[rows].any()
            assert np.isnan(values["auc"]) != both
            assert np.isnan(values["average_precision"]) != some
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if both:
                    assert values["auc"] == pytest.approx(sk.roc_auc_score(gold[rows], probability[rows]))
                if some:
                    expected = sk.average_precision_score(gold[rows], probability[rows])
                    assert values["average_precision"] == pytest.approx(expected)
                if len(rows):
                    assert values["brier"] == pytest.approx(np.mean((probability[rows] - gold[rows]) ** 2))


def test_calibration_error_is_the_weighted_gap_of_the_bins():
    positive = np.array([True, False, True, True])
    values = probability_metrics(positive, np.array([0.95, 0.95, 0.15, 1.0]))
    high = abs((0.95 + 0.95 + 1.0) / 3 - 2 / 3) * 3 / 4
    low = abs(0.15 - 1) / 4
    assert values["ece"] == pytest.approx(high + low)


def test_an_empty_table_has_no_value_and_a_missing_label_is_no_class():
    codes = confusion_codes(np.array([-1, 1, 0], dtype=np.int8), np.array([1, -1, 0], dtype=np.int8))
    assert codes.tolist() == [-1, -1, 3]
    values = confusion_metrics(np.zeros((2, 4)))
    assert all(np.isnan(value).all() for value in values.values())


def test_one_class_marks_tables_whose_gold_lacks_a_class():
    assert one_class(np.array([[0, 3, 0, 5], [2, 0, 1, 0], [1, 0, 0, 1]])).tolist() == [True, True, False]
