import numpy as np
import pytest

from dspy_mama.core.probabilities import probability_metrics
from dspy_mama.stats import resample_probabilities
from dspy_mama.stats.probability import LARGE


def sample(n, seed=2):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    return positive, np.clip(0.3 * positive + 0.7 * rng.random(n), 0, 1)


def test_draws_equal_the_metrics_of_the_drawn_rows():
    positive, probability = sample(50)
    found = resample_probabilities(positive, probability, np.random.default_rng(9), 30)
    rows = np.random.default_rng(9).integers(0, 50, size=(30, 50))
    for name in ("auc", "average_precision", "brier", "ece"):
        expected = [float(probability_metrics(positive[r], probability[r])[name]) for r in rows]
        assert found[name] == pytest.approx(expected), name


def test_clusters_are_drawn_whole():
    positive, probability = np.array([True, True, False, False]), np.array([0.9, 0.8, 0.1, 0.2])
    found = resample_probabilities(
        positive, probability, np.random.default_rng(0), 200, clusters=np.array([5, 5, 9, 9])
    )
    known = found["auc"][~np.isnan(found["auc"])]
    assert (known == 1).all()
    assert np.isnan(found["auc"]).mean() == pytest.approx(0.5, abs=0.1)


def test_numbers_do_not_depend_on_the_block_size():
    whole = resample_probabilities(*sample(40), np.random.default_rng(1), 20)
    blocks = resample_probabilities(*sample(40), np.random.default_rng(1), 20, chunk_bytes=3000)
    assert whole["ece"] == pytest.approx(blocks["ece"])


def test_many_pairs_give_the_same_interval_as_few_enough_would():
    positive, probability = sample(LARGE + 1)
    found = resample_probabilities(positive, probability, np.random.default_rng(1), 300)["auc"]
    value = float(probability_metrics(positive, probability)["auc"])
    # Hanley and McNeil (1982): standard error of an AUC.
    q1, q2 = value / (2 - value), 2 * value**2 / (1 + value)
    risky, safe = positive.sum(), (~positive).sum()
    error = np.sqrt(
        (value * (1 - value) + (risky - 1) * (q1 - value**2) + (safe - 1) * (q2 - value**2)) / (risky * safe)
    )
    assert found.mean() == pytest.approx(value, abs=5e-4)
    assert found.std() == pytest.approx(error, rel=0.25)
