"""Invariants of the bootstrap.

1. The resampled counts are those of a plain loop over the same drawn rows.
2. All columns see the same resamples.
3. The numbers depend on the generator alone, not on block size.
4. Collapsing equal rows changes nothing in distribution.
"""

import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import f1_score

from dspy_mama.core import DeclarationError
from dspy_mama.core.confusion import confusion_codes, confusion_counts, confusion_metrics, one_class
from dspy_mama.stats import resample_counts


def random_codes(n=126, columns=9, seed=0):
    rng = np.random.default_rng(seed)
    return rng.choice([-1, 0, 1, 2, 3], size=(n, columns), p=[0.05, 0.3, 0.1, 0.1, 0.45]).astype(np.int8)


def test_counts_equal_a_plain_loop_over_scikit_learn_on_the_same_rows():
    rng = np.random.default_rng(1)
    gold, said = (rng.random((126, 3)) < 0.3).astype(np.int8), (rng.random((126, 3)) < 0.4).astype(np.int8)
    values = confusion_metrics(resample_counts(confusion_codes(gold, said), np.random.default_rng(5), 40).draws)
    rows = np.random.default_rng(5).integers(0, 126, size=(40, 126))
    for draw in range(40):
        for column in range(3):
            expected = f1_score(
                gold[rows[draw], column], said[rows[draw], column], labels=[0, 1], average="macro", zero_division=0
            )
            assert values["macro_f1"][draw, column] == pytest.approx(expected)


def test_columns_share_their_resamples():
    one = random_codes(columns=1)
    draws = resample_counts(np.hstack([one, one]), np.random.default_rng(0), 200).draws
    assert (draws[:, 0] == draws[:, 1]).all()
    assert len(np.unique(draws[:, 0], axis=0)) > 100


def test_numbers_do_not_depend_on_the_block_size():
    codes = random_codes()
    whole = resample_counts(codes, np.random.default_rng(3), 100).draws
    blocks = resample_counts(codes, np.random.default_rng(3), 100, chunk_bytes=20_000).draws
    assert (whole == blocks).all()


def test_every_resample_has_as_many_units_as_the_data():
    codes = random_codes()
    codes[:, 0] = 3
    draws = resample_counts(codes, np.random.default_rng(0), 50)
    assert (draws.draws[:, 0].sum(axis=1) == 126).all()
    assert draws.units == 126
    assert (draws.observed == confusion_counts(codes)).all()


def test_collapsed_rows_have_the_moments_of_the_plain_bootstrap():
    codes = np.repeat(np.array([[0], [1], [3]], dtype=np.int8), [500, 300, 1200], axis=0)
    draws = resample_counts(codes, np.random.default_rng(0), 4000)
    assert len(draws.multiplicity) == 3
    hits = draws.draws[:, 0, 0]
    assert hits.mean() == pytest.approx(500, abs=2)
    assert hits.std() == pytest.approx(np.sqrt(2000 * 0.25 * 0.75), rel=0.05)


def test_clusters_are_drawn_whole():
    codes = np.array([[0], [0], [0], [3], [3]], dtype=np.int8)
    draws = resample_counts(codes, np.random.default_rng(0), 100, clusters=np.array([7, 7, 7, 2, 2]))
    assert draws.units == 2
    assert {tuple(c) for c in draws.draws[:, 0, [0, 3]]} == {(6, 0), (3, 2), (0, 4)}


def test_degenerate_resamples_are_those_without_a_class():
    codes = np.array([0] + [3] * 19, dtype=np.int8)[:, None]
    share = one_class(resample_counts(codes, np.random.default_rng(0), 5000).draws)[:, 0].mean()
    assert share == pytest.approx(0.95**20, abs=0.02)


def test_more_columns_than_fit_one_integer_are_told_apart():
    codes = random_codes(n=60, columns=70)
    draws = resample_counts(codes, np.random.default_rng(0), 5)
    assert len(draws.multiplicity) == len(np.unique(codes, axis=0))
    assert (np.einsum("kcd,k->cd", draws.contributions, draws.multiplicity) == draws.observed).all()


def test_a_million_pairs_stay_in_bounded_memory():
    codes = random_codes(n=1_000_000, columns=4)
    tracemalloc.start()
    draws = resample_counts(codes, np.random.default_rng(0), 200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6
    assert (abs(draws.draws.mean(axis=0) - draws.observed) < 500).all()


def test_no_pairs_and_wrong_arguments():
    assert resample_counts(np.zeros((0, 2), dtype=np.int8), np.random.default_rng(0), 10).draws.sum() == 0
    with pytest.raises(DeclarationError, match="at least 1"):
        resample_counts(random_codes(), np.random.default_rng(0), 0)
    with pytest.raises(DeclarationError, match="clusters holds 2 rows"):
        resample_counts(random_codes(), np.random.default_rng(0), 5, clusters=np.array([0, 1]))


@pytest.mark.parametrize("n", [60, 5000])
def test_swapping_columns_swaps_the_draws_and_nothing_else(n):
    codes = random_codes(n=n, columns=2)
    forth = resample_counts(codes, np.random.default_rng(0), 20).draws
    back = resample_counts(codes[:, ::-1], np.random.default_rng(0), 20).draws
    assert (forth == back[:, ::-1]).all()
