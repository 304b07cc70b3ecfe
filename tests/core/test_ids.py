"""What makes two questions the same question."""

import pytest

from dspy_mama.core.ids import asked


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("May I drive?", "may i  drive ?"),
        ("May I drive?", "“May I drive”…"),
        ("ＭＡＹ I drive？", "May I drive"),
        ("薬を飲んでもいいですか。", "薬を飲んでもいいですか？"),
    ],
)
def test_blanks_case_width_and_signs_make_no_other_question(one, other):
    assert asked(one) == asked(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Take 3.5 mg?", "Take 35 mg?"),
        ("Take 3?", "Take 4?"),
        ("?", "!"),
        ("का", "की"),
        ("がん", "かん"),
    ],
)
def test_words_and_numbers_do(one, other):
    assert asked(one) != asked(other)
