import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from dspy_mama.core import DeclarationError
from dspy_mama.stats import cohen_kappa, fleiss_kappa, krippendorff_alpha

# Fleiss (1971), as Wikipedia's worked example prints it: 10 items, 14 raters, 5 categories.
FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def ratings_from(counts):
    return np.array([np.repeat(np.arange(len(row)), row) for row in counts])


def test_fleiss_gives_the_published_example():
    assert fleiss_kappa(ratings_from(FLEISS)) == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize("quadratic", [False, True])
def test_cohen_equals_scikit_learn(quadratic):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 60))
        first = rng.integers(0, 5, n)
        second = np.where(rng.random(n) < 0.5, first, rng.integers(0, 5, n))
        expected = cohen_kappa_score(first, second, labels=range(5), weights="quadratic" if quadratic else None)
        found = cohen_kappa(first, second, quadratic=quadratic, categories=5)
        assert found == pytest.approx(expected) if found is not None else np.isnan(expected)


def test_krippendorff_gives_the_published_example():
    """The worked example of the Wikipedia article: 3 coders, 15 units, nominal .691 and interval .811."""
    table = """. . . . . 3 4 1 2 1 1 3 3 . 3
1 . 2 1 3 3 4 3 . . . . . . .
. . 2 1 3 4 4 . 2 1 1 3 3 . 4"""
    ratings = np.array([[-1 if v == "." else int(v) for v in row.split()] for row in table.splitlines()]).T
    assert krippendorff_alpha(ratings) == pytest.approx(0.691, abs=5e-4)
    assert krippendorff_alpha(ratings, interval=True) == pytest.approx(0.811, abs=5e-4)


def test_missing_ratings_are_left_out_and_no_variation_is_undefined():
    ratings = np.array([[0, 0], [1, -1], [1, 1]])
    assert fleiss_kappa(ratings) == fleiss_kappa(ratings[[0, 2]]) == 1.0
    assert fleiss_kappa(np.zeros((3, 2), dtype=int)) is None
    assert cohen_kappa(np.array([0, 0]), np.array([0, 0])) is None
    assert krippendorff_alpha(np.array([[0, -1]])) is None


def test_one_rater_cannot_agree():
    with pytest.raises(DeclarationError, match="two raters"):
        fleiss_kappa(np.zeros((3, 1), dtype=int))
