import csv
import itertools
import os
from pathlib import Path

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
    assert krippendorff_alpha(ratings, "interval") == pytest.approx(0.811, abs=5e-4)


def test_krippendorff_gives_the_published_values_on_every_scale():
    """Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, example C: 4 observers, 12 units."""
    table = """1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 ."""
    ratings = np.array([[-1 if v == "." else int(v) for v in row.split()] for row in table.splitlines()]).T
    found = {scale: krippendorff_alpha(ratings, scale) for scale in ("nominal", "ordinal", "interval")}
    assert found == pytest.approx({"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}, abs=5e-4)


def test_the_ordinal_distance_counts_the_ratings_in_between():
    """Against the sum in the definition: between c and k, half of c's and k's ratings and all of those between."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        ratings = rng.integers(0, 5, (30, 3))
        ratings[rng.random((30, 3)) < 0.2] = -1
        usable = ratings[(ratings >= 0).sum(axis=1) >= 2]
        totals = np.array([(usable == c).sum() for c in range(5)])
        coincidence = np.zeros((5, 5))
        for row in usable:
            known = row[row >= 0]
            for a, b in itertools.permutations(range(len(known)), 2):
                coincidence[known[a], known[b]] += 1 / (len(known) - 1)
        distance = np.array([
            [(totals[min(c, k) : max(c, k) + 1].sum() - (totals[c] + totals[k]) / 2) ** 2 for k in range(5)]
            for c in range(5)
        ])  # fmt: skip
        expected = (distance * (np.outer(totals, totals) - np.diag(totals))).sum() / (totals.sum() - 1)
        assert krippendorff_alpha(ratings, "ordinal") == pytest.approx(1 - (distance * coincidence).sum() / expected)


def shared_data():
    root = os.environ.get("MAMA_SHARED_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(root) / "kqa" / "dataset" / "NLI_medical_annotator.csv"


@pytest.mark.skipif(not shared_data().is_file(), reason="K-QA is not here; MAMA_SHARED_DATA names its folder")
def test_agreement_of_three_physicians_on_k_qa():
    with shared_data().open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    names = {"Entailment": 0, "Neutral": 1, "Contradiction": 2}
    ratings = np.array([[names[row[f"label_{rater}"]] for rater in range(3)] for row in rows])
    assert ratings.shape == (399, 3)
    assert fleiss_kappa(ratings) == pytest.approx(0.7189, abs=5e-5)
    pairs = [cohen_kappa(ratings[:, a], ratings[:, b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert pairs == pytest.approx([0.670, 0.761, 0.732], abs=5e-4)


def test_missing_ratings_are_left_out_and_no_variation_is_undefined():
    ratings = np.array([[0, 0], [1, -1], [1, 1]])
    assert fleiss_kappa(ratings) == fleiss_kappa(ratings[[0, 2]]) == 1.0
    assert fleiss_kappa(np.zeros((3, 2), dtype=int)) is None
    assert cohen_kappa(np.array([0, 0]), np.array([0, 0])) is None
    assert krippendorff_alpha(np.array([[0, -1]])) is None


def test_one_rater_cannot_agree():
    with pytest.raises(DeclarationError, match="two raters"):
        fleiss_kappa(np.zeros((3, 1), dtype=int))
