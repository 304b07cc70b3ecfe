from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets import SHARES, split_of, split_pairs

PAIRS = [QAPair(f"ja{n}", f"question {n // 2}", "answer") for n in range(1000)]


def test_splits_are_disjoint_complete_and_near_their_shares():
    splits = split_pairs(PAIRS)
    ids = [pair.id for part in splits.values() for pair in part]
    assert sorted(ids) == sorted(pair.id for pair in PAIRS)
    for name, share in SHARES.items():
        # Four standard deviations of a binomial share at n = 1000.
        assert abs(len(splits[name]) / 1000 - share) < 4 * (share * (1 - share) / 1000) ** 0.5


def test_split_depends_on_the_id_alone():
    whole = {pair.id: name for name, part in split_pairs(PAIRS).items() for pair in part}
    some = {pair.id: name for name, part in split_pairs(PAIRS[::-7]).items() for pair in part}
    assert some.items() <= whole.items()


def test_split_is_the_same_in_another_process():
    code = "from dspy_mama.datasets import split_of; print([split_of(f'ja{n}') for n in range(20)])"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert out.stdout.strip() == str([split_of(f"ja{n}") for n in range(20)])


def test_seed_and_share_order():
    ids = [pair.id for pair in PAIRS]
    assert [split_of(i, seed=1) for i in ids] != [split_of(i) for i in ids]
    assert [split_of(i, shares=dict(reversed(SHARES.items()))) for i in ids] == [split_of(i) for i in ids]


def test_clusters_stay_together():
    splits = split_pairs(PAIRS, cluster=lambda pair: pair.question)
    questions = [{pair.question for pair in part} for part in splits.values()]
    assert sum(map(len, questions)) == len(set.union(*questions))


def test_empty_split_is_there():
    assert split_pairs(PAIRS[:1], shares={"train": 1.0, "test": 0.0}) == {"train": PAIRS[:1], "test": []}


@pytest.mark.parametrize("shares", [{"train": 0.5}, {"train": 1.5, "test": -0.5}, {}])
def test_shares_must_sum_to_one(shares):
    with pytest.raises(DeclarationError, match="shares"):
        split_of("ja1", shares=shares)


@given(st.text(), st.integers())
def test_every_id_has_a_split(id, seed):
    assert split_of(id, seed) in SHARES
