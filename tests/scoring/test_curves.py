import numpy as np
import pytest
from sklearn.metrics import auc, roc_curve

from dspy_mama.core.probabilities import probability_metrics
from dspy_mama.scoring import labels_from_arrays, probability_curves, reliability_points, roc_points


def sample(seed, n=80):
    rng = np.random.default_rng(seed)
    return rng.random(n) < 0.4, rng.choice([0.0, 0.1, 0.35, 0.5, 0.9, 1.0], n)


@pytest.mark.parametrize("seed", range(5))
def test_roc_equals_scikit_learn_with_ties(seed):
    positive, chance = sample(seed)
    points = np.array(roc_points(positive, chance))
    x, y, _ = roc_curve(positive, chance, drop_intermediate=False)
    assert points == pytest.approx(np.column_stack([x, y]))
    assert auc(points[:, 0], points[:, 1]) == pytest.approx(float(probability_metrics(positive, chance)["auc"]))


def test_roc_needs_both_classes_and_stays_small():
    assert roc_points(np.array([True, True]), np.array([0.1, 0.2])) is None
    rng = np.random.default_rng(0)
    points = roc_points(rng.random(5000) < 0.5, rng.random(5000))
    assert len(points) == 201
    assert (points[0], points[-1]) == ([0.0, 0.0], [1.0, 1.0])


def test_reliability_bins_give_back_the_calibration_error():
    positive, chance = sample(3)
    points = reliability_points(positive, chance)
    error = sum(p["n"] * abs(p["said"] - p["risky"]) for p in points) / len(positive)
    assert error == pytest.approx(float(probability_metrics(positive, chance)["ece"]))
    assert all(p["low"] <= p["risky"] <= p["high"] for p in points)


def test_wilson_interval_of_a_known_share():
    (point,) = reliability_points(np.array([True] * 8 + [False] * 2), np.full(10, 0.75))
    assert (point["low"], point["high"]) == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_domains_without_probabilities_have_no_curves():
    chances = [[0.9, np.nan, np.nan], [0.2, np.nan, np.nan]]
    labels = labels_from_arrays([[1, 0, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]], chances)
    assert set(probability_curves(labels)) == {"medical"}
