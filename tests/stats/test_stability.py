import numpy as np
import pytest

from dspy_mama.core import DeclarationError
from dspy_mama.stats import fleiss_estimate, fleiss_kappa, flip_rates, measure_stability, minority_shares


def repeats_of(rng, items, repeats, share=0.3, flip=0.2):
    """Labels of repeats that each flip the true label with a known chance, and the kappa that follows from it."""
    truth = rng.random(items) < share
    flipped = rng.random((items, repeats)) < flip
    risky = share * (1 - flip) + (1 - share) * flip
    chance = risky**2 + (1 - risky) ** 2
    kappa = ((1 - flip) ** 2 + flip**2 - chance) / (1 - chance)
    return (truth[:, None] ^ flipped).astype(np.int8), kappa


def test_a_flip_rate_is_the_share_of_pairs_of_repeats_that_differ():
    ratings = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0], [1, -1, 0, -1], [1, -1, -1, -1]])
    assert flip_rates(ratings).tolist()[:4] == [0.0, 0.5, pytest.approx(4 / 6), 1.0]
    assert np.isnan(flip_rates(ratings)[4])
    assert minority_shares(ratings).tolist() == [0.0, 0.25, 0.5, 0.5, 0.0]


def test_the_estimate_is_fleiss_kappa_and_its_interval_is_that_of_a_plain_bootstrap():
    ratings, _ = repeats_of(np.random.default_rng(3), 60, 4)
    found = fleiss_estimate(ratings, np.random.default_rng(0), 2000)
    assert found.value == pytest.approx(fleiss_kappa(ratings))
    rng = np.random.default_rng(1)
    plain = [fleiss_kappa(ratings[rng.integers(0, 60, 60)]) for _ in range(2000)]
    assert (found.interval.low, found.interval.high) == pytest.approx(np.percentile(plain, [2.5, 97.5]), abs=0.02)


def test_the_interval_holds_the_true_kappa_as_often_as_it_says():
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        ratings, kappa = repeats_of(rng, 120, 5)
        interval = fleiss_estimate(ratings, rng, 400).interval
        hits += interval.low <= kappa <= interval.high
    assert 180 <= hits <= 199


def test_the_flip_rate_estimates_the_chance_that_two_runs_disagree():
    ratings, _ = repeats_of(np.random.default_rng(5), 4000, 3, flip=0.1)
    found = measure_stability(ratings, np.random.default_rng(0), 500)
    assert found.flip_rate.interval.low <= 2 * 0.1 * 0.9 <= found.flip_rate.interval.high
    assert found.n == found.complete == 4000


def test_missing_labels_are_counted_and_never_taken_for_a_flip():
    ratings = np.array([[1, 1, 1], [1, -1, 1], [0, -1, -1], [0, 0, 1]])
    found = measure_stability(ratings, np.random.default_rng(0), 100)
    assert (found.n, found.complete, found.missing, found.flipped) == (3, 2, 3, 1)
    assert found.flip_rate.value == pytest.approx(2 / 9)


def test_kappa_is_undefined_where_only_one_label_was_given_though_nothing_flips():
    found = measure_stability(np.zeros((10, 3), dtype=int), np.random.default_rng(0), 100)
    assert found.kappa.value is None
    assert found.kappa.interval is None
    assert found.flip_rate.value == 0


def test_one_resample_kind_of_item_without_variation_counts_as_undefined():
    ratings = np.array([[0, 0]] * 9 + [[1, 1]])
    interval = fleiss_estimate(ratings, np.random.default_rng(0), 1000).interval
    assert interval.undefined == pytest.approx(1000 * 0.9**10, abs=60)
    assert interval.low == interval.high == 1


def test_the_same_seed_gives_the_same_interval():
    ratings, _ = repeats_of(np.random.default_rng(3), 60, 4)
    one, two = (fleiss_estimate(ratings, np.random.default_rng(9), 200) for _ in range(2))
    assert one == two


def test_nothing_to_compare_is_refused_or_empty():
    with pytest.raises(DeclarationError, match="two raters"):
        measure_stability(np.zeros((3, 1), dtype=int), np.random.default_rng(0), 10)
    with pytest.raises(DeclarationError, match="resamples"):
        measure_stability(np.zeros((3, 2), dtype=int), np.random.default_rng(0), 0)
    empty = measure_stability(np.full((2, 3), -1), np.random.default_rng(0), 10)
    assert (empty.n, empty.flip_rate.value, empty.kappa.value) == (0, None, None)
