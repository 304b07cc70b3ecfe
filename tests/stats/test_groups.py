import numpy as np
import pytest
from scipy import stats as scipy_stats

from dspy_mama.core import DeclarationError
from dspy_mama.stats import compare_groups, compare_proportions, fleiss_kappa, holm, pairwise_proportions

RNG = np.random.default_rng(7)
NORMAL = {name: list(RNG.normal(mean, 1, 40)) for name, mean in (("a", 0.0), ("b", 0.3), ("c", 1.0))}
LEVELS = {name: list(RNG.choice([0, 2, 3, 4, 5], 60, p=p)) for name, p in
          (("a", [0.5, 0.2, 0.1, 0.1, 0.1]), ("b", [0.1, 0.2, 0.1, 0.1, 0.5]))}  # fmt: skip


def test_groups_that_look_normal_are_compared_by_analysis_of_variance():
    found = compare_groups(NORMAL)
    expected = scipy_stats.f_oneway(*NORMAL.values())
    assert found.test == "anova"
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.freedom == (2, 117)
    assert found.normality == {k: pytest.approx(scipy_stats.shapiro(v).pvalue) for k, v in NORMAL.items()}


def test_analysis_of_variance_equals_statsmodels():
    pytest.importorskip("statsmodels")
    from statsmodels.stats.oneway import anova_oneway

    expected = anova_oneway(list(NORMAL.values()), use_var="equal")
    found = compare_groups(NORMAL)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_levels_of_a_scale_are_compared_by_ranks():
    found, expected = compare_groups(LEVELS), scipy_stats.kruskal(*LEVELS.values())
    assert found.test == "kruskal_wallis"
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))


@pytest.mark.parametrize("groups", [{}, {"a": [1.0, 2.0]}, {"a": [5.0] * 4, "b": [5.0] * 4}, {"a": [1.0], "b": [2.0]}])
def test_nothing_to_compare_is_no_test_and_no_p(groups):
    found = compare_groups(groups)
    assert (found.test, found.p, found.statistic) == ("none", None, None)


@pytest.mark.parametrize("values", [[4, 2, 3, 1, 1, 5], [0, 0, 5, 0, 0, 0], [1.1, 1.2, 1.3, 1.7, 0.9]])
def test_groups_with_the_same_values_do_not_differ_and_have_a_p(values):
    found = compare_groups({name: list(np.array(values)[RNG.permutation(len(values))]) for name in "abcde"})
    assert found.statistic == pytest.approx(0, abs=1e-9)
    assert found.p == 1.0


def test_proportions_equal_scipy_and_statsmodels():
    pytest.importorskip("statsmodels")
    from statsmodels.stats.proportion import proportions_chisquare

    counts = {"a": (30, 100), "b": (45, 100), "c": (52, 90)}
    found = compare_proportions(counts)
    table = [[hits, n - hits] for hits, n in counts.values()]
    expected = scipy_stats.chi2_contingency(table, correction=False)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    other = proportions_chisquare([30, 45, 52], [100, 100, 90])
    assert (found.statistic, found.p) == pytest.approx(other[:2])
    assert found.expected_minimum == pytest.approx(expected.expected_freq.min())


def test_proportions_that_are_all_0_or_all_1_have_no_test():
    assert compare_proportions({"a": (0, 5), "b": (0, 7)}).test == "none"
    assert compare_proportions({"a": (5, 5), "b": (0, 0)}).test == "none"


def test_more_successes_than_trials_are_refused():
    with pytest.raises(DeclarationError, match="b"):
        compare_proportions({"a": (1, 2), "b": (3, 2)})


def test_pairs_of_proportions_are_adjusted_as_statsmodels_adjusts_them():
    pytest.importorskip("statsmodels")
    from statsmodels.stats.multitest import multipletests

    counts = {"a": (30, 100), "b": (45, 100), "c": (52, 90), "d": (0, 0)}
    found = pairwise_proportions(counts)
    assert set(found) == {("a", "b"), ("a", "c"), ("b", "c")}
    raw = [compare_proportions({x: counts[x], y: counts[y]}).p for x, y in found]
    assert list(found.values()) == pytest.approx(list(multipletests(raw, method="holm")[1]))
    random = list(RNG.random(20))
    assert holm(random) == pytest.approx(list(multipletests(random, method="holm")[1]))


def test_kappa_of_three_identical_runs_is_1_and_of_independent_ones_near_0_as_in_statsmodels():
    pytest.importorskip("statsmodels")
    from statsmodels.stats.inter_rater import aggregate_raters
    from statsmodels.stats.inter_rater import fleiss_kappa as other

    one = RNG.integers(0, 5, 400)
    assert fleiss_kappa(np.stack([one, one, one], axis=1)) == pytest.approx(1)
    random = RNG.integers(0, 5, (4000, 3))
    found = fleiss_kappa(random)
    assert abs(found) < 0.03
    assert found == pytest.approx(other(aggregate_raters(random)[0]))
