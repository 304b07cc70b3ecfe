import numpy as np
import pytest
from scipy.stats import bootstrap

from dspy_mama.core.confusion import confusion_codes, confusion_metrics
from dspy_mama.stats import (
    estimate,
    holm,
    mcnemar_exact,
    paired_difference,
    percentile_interval,
    resample_counts,
    shared_pairs,
)


def metric(column, name="macro_f1"):
    return lambda counts: confusion_metrics(counts[..., column, :])[name]


def two_systems(seed=0, n=126, better=0.2):
    rng = np.random.default_rng(seed)
    gold = (rng.random(n) < 0.4).astype(np.int8)
    first = np.where(rng.random(n) < 0.35, 1 - gold, gold).astype(np.int8)
    second = np.where((first != gold) & (rng.random(n) < better / 0.35), gold, first).astype(np.int8)
    return np.column_stack([confusion_codes(gold, first), confusion_codes(gold, second)])


def test_a_system_differs_from_itself_by_exactly_nothing():
    codes = two_systems()[:, [0, 0]]
    found = paired_difference(resample_counts(codes, np.random.default_rng(0)), metric(0), metric(1))
    assert (found.value, found.interval.low, found.interval.high) == (0.0, 0.0, 0.0)
    assert not found.significant
    assert found.finding == "not distinguishable"


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_swapped_systems_mirror_the_interval(method):
    counts = resample_counts(two_systems(), np.random.default_rng(0))
    forth = paired_difference(counts, metric(0), metric(1), method=method)
    back = paired_difference(counts, metric(1), metric(0), method=method)
    assert back.value == -forth.value
    assert (back.interval.low, back.interval.high) == pytest.approx(
        (-forth.interval.high, -forth.interval.low), abs=1e-12
    )
    assert (forth.finding, back.finding) == ("higher", "lower")


def test_a_small_gain_on_few_pairs_is_not_distinguishable():
    counts = resample_counts(two_systems(n=20, better=0.05), np.random.default_rng(0))
    found = paired_difference(counts, metric(0), metric(1))
    assert found.interval.low <= 0 <= found.interval.high
    assert found.finding == "not distinguishable"


def test_shared_pairs_leaves_out_what_one_side_did_not_score():
    first, second = shared_pairs(np.array([[0], [-1], [3]], dtype=np.int8), np.array([[1], [2], [-1]], dtype=np.int8))
    assert first.ravel().tolist() == [0, -1, -1]
    assert second.ravel().tolist() == [1, -1, -1]


def test_percentile_bounds_are_the_percentiles_and_undefined_draws_are_counted():
    draws = np.append(np.arange(1001.0), [np.nan] * 9)
    found = percentile_interval(draws)
    assert (found.low, found.high, found.resamples, found.undefined) == (25.0, 975.0, 1001, 9)
    assert percentile_interval(np.array([np.nan])) is None


def test_bca_agrees_with_scipy():
    codes = two_systems()[:, :1]
    right = np.isin(codes[:, 0], (0, 3)).astype(float)
    ours = estimate(resample_counts(codes, np.random.default_rng(1), 20_000), metric(0, "accuracy"), method="bca")
    theirs = bootstrap((right,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(2))
    assert ours.interval.method == "bca"
    assert (ours.interval.low, ours.interval.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.009)


def test_bca_says_when_it_falls_back():
    counts = resample_counts(np.full((10, 1), 3, dtype=np.int8), np.random.default_rng(0))
    assert estimate(counts, metric(0, "accuracy"), method="bca").interval.method == "percentile"


def test_one_pair_has_a_value_and_no_interval_and_no_pair_has_neither():
    one = estimate(resample_counts(np.array([[3]], dtype=np.int8), np.random.default_rng(0)), metric(0, "accuracy"))
    assert (one.value, one.interval) == (1.0, None)
    none = estimate(resample_counts(np.array([[-1]], dtype=np.int8), np.random.default_rng(0)), metric(0))
    assert (none.value, none.interval) == (None, None)


def test_coverage_on_simulated_data_is_near_its_level():
    """True macro-F1 comes from the population: share .4 risky, sensitivity .8, specificity .7."""
    truth = float(confusion_metrics(np.array([0.32, 0.18, 0.08, 0.42]))["macro_f1"])
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(1000):
        codes = rng.choice(4, size=(126, 1), p=[0.32, 0.18, 0.08, 0.42]).astype(np.int8)
        found = estimate(resample_counts(codes, rng, 1000), metric(0)).interval
        covered += found.low <= truth <= found.high
    assert 0.93 <= covered / 1000 <= 0.97


def test_mcnemar_is_the_binomial_of_the_discordant_pairs():
    first = np.array([True] * 9 + [False] * 1 + [True] * 5)
    second = np.array([False] * 9 + [True] * 1 + [True] * 5)
    assert mcnemar_exact(first, second) == (9, 1, pytest.approx(22 / 1024))
    assert mcnemar_exact(first, first) == (0, 0, 1.0)


def test_holm_steps_down_and_keeps_the_order():
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
