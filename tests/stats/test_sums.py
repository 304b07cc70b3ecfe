import numpy as np
import pytest
from scipy.stats import binomtest

from dspy_mama.core import DeclarationError
from dspy_mama.stats.sums import deviation_of_sums, mean_of_sums, sums_estimate, wilson_interval


def means(values, **options):
    return sums_estimate([(v, 1) for v in values], mean_of_sums, np.random.default_rng(0), **options)


def test_a_mean_has_the_interval_that_theory_gives():
    values = np.random.default_rng(1).normal(5, 2, 400).round(3)
    found = means(values, resamples=4000)
    half = 1.96 * values.std(ddof=1) / 20
    assert found.value == pytest.approx(values.mean())
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.03
    )
    bca = means(values, resamples=4000, method="bca")
    assert bca.interval.method == "bca"
    assert bca.interval.low == pytest.approx(found.interval.low, abs=0.05)


def test_a_deviation_is_the_samples():
    values = [1, 1, 2, 3, 5, 5]
    found = sums_estimate([(v, v * v, 1) for v in values], deviation_of_sums, np.random.default_rng(0))
    assert found.value == pytest.approx(np.std(values, ddof=1))


def test_the_order_of_items_does_not_matter():
    values = [1.0, 2.5, 2.5, 7.0, 3.0]
    assert means(values) == means(values[::-1])


def test_what_has_no_value_has_none():
    ratio = sums_estimate([(0, 1), (0, 2)], lambda s: s[..., 1] / s[..., 0], np.random.default_rng(0))
    assert (ratio.value, ratio.interval) == (None, None)
    assert means([]).value is None
    assert means([3]).value == 3
    assert means([3]).interval is None


def test_resamples_without_a_value_are_counted():
    found = sums_estimate([(0, 1), (1, 0)], lambda s: s[..., 1] / s[..., 0], np.random.default_rng(0), 200)
    assert found.interval.undefined > 20
    with pytest.raises(DeclarationError, match="resamples must be at least 1"):
        means([1, 2], resamples=0)


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (5, 5), (3, 7), (848, 900)])
def test_wilson_agrees_with_scipy(successes, n):
    known = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson_interval(successes, n) == pytest.approx((known.low, known.high))
    assert wilson_interval(0, 0) is None
