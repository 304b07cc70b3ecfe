import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_mama.retrieval.claims import CLAIM_LIMIT, split_claims


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ("Take the leftover amoxicillin. Green mucus means bacteria.", 2),
        ("Yes. Families often share prescription medicine.", 1),
        ("様子を見ても問題ありません。水分をこまめにとりましょう。", 2),
        ("はい。様子を見ても問題ありません。", 1),
        ("No.", 1),
        ("Rest well and drink a lot of water. OK?", 1),
        ("  ", 0),
    ],
)
def test_sentences_are_claims_and_short_ones_join(answer, claims):
    assert len(split_claims(answer)) == claims


@given(
    st.lists(st.sampled_from(["This sentence makes one whole claim.", "No.", "様子を見ましょう。", "\n"]), max_size=60)
)
def test_claims_are_bounded_and_keep_every_word(parts):
    answer = " ".join(parts)
    claims = split_claims(answer)
    assert len(claims) <= CLAIM_LIMIT
    assert " ".join(claims).split() == answer.split()
    assert all(claims)
