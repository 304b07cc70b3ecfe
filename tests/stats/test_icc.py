import numpy as np
import pytest

from dspy_mama.core import DeclarationError
from dspy_mama.stats.icc import icc_agreement

SHROUT_FLEISS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float)
"""Table 2 of Shrout and Fleiss (1979), who print ICC(2,1) = .29."""


def test_the_published_example():
    assert icc_agreement(SHROUT_FLEISS) == pytest.approx(0.29, abs=0.005)


def test_a_constant_shift_is_no_agreement():
    scores = np.arange(10.0)
    assert icc_agreement(np.stack([scores, scores], axis=1)) == pytest.approx(1)
    assert icc_agreement(np.stack([scores, scores + 5], axis=1)) < 0.5


def test_what_has_no_spread_has_no_correlation():
    assert icc_agreement(np.ones((4, 2))) is None
    assert icc_agreement(np.ones((1, 2))) is None
    with pytest.raises(DeclarationError):
        icc_agreement(np.ones((4, 1)))
