from hypothesis import given
from hypothesis import strategies as st

from dspy_mama.reporting.word_diff import word_diff


def shown(pieces):
    return [(piece.change, piece.text) for piece in pieces]


def test_changed_words_are_marked_on_both_sides():
    old, new = word_diff("Take 800 mg now.", "See a doctor now.")
    assert shown(old) == [("gone", "Take 800 mg "), ("same", "now.")]
    assert shown(new) == [("new", "See a doctor "), ("same", "now.")]


def test_japanese_is_compared_sign_by_sign():
    old, new = word_diff("薬を飲む。", "薬を飲まない。")
    assert shown(old)[0] == ("same", "薬を飲")
    assert ("new", "まない") in shown(new)


def test_blanks_alone_are_no_change():
    assert {piece.change for side in word_diff("a  b\nc", "a b c") for piece in side} == {"same"}


@given(st.text(), st.text())
def test_the_pieces_are_the_texts(before, after):
    old, new = word_diff(before, after)
    assert "".join(piece.text for piece in old) == before
    assert "".join(piece.text for piece in new) == after
    assert {piece.change for piece in old} <= {"same", "gone"}


def test_very_long_texts_are_compared_too():
    text = " ".join(f"the word{number}" for number in range(3000))
    old, new = word_diff(text, text.replace("word2000", "tablet"))
    assert "".join(piece.text for piece in old) == text
    assert {piece.text.strip() for piece in new if piece.change == "new"} == {"tablet"}
