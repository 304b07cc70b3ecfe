import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_mama.core.cases import Passage
from dspy_mama.retrieval.budget import CUT_MARK, cut_to_tokens, estimate_tokens, within_budget

ENGLISH = "Call the number at once. Note the time when it began. Do not drive yourself to the hospital."
JAPANESE = "すぐに救急車を呼びます。始まった時刻を書き留めます。自分で運転してはいけません。"


def passage(text: str, document: str = "d", id: str = "x") -> Passage:
    return Passage(id=id, text=text, document=document)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a" * 400, 100), ("痛" * 150, 100), ("a" * 401, 101)])
def test_tokens_are_estimated_by_script(text, tokens):
    assert estimate_tokens(text) == tokens


def test_a_text_that_fits_is_left_alone():
    assert cut_to_tokens(ENGLISH, 100) is ENGLISH


@pytest.mark.parametrize(
    ("text", "budget", "kept"),
    [
        (ENGLISH, 8, "Call the number at once."),
        (ENGLISH, 16, "Call the number at once. Note the time when it began."),
        (JAPANESE, 12, "すぐに救急車を呼びます。"),
        (ENGLISH, 4, "Call the"),
        (JAPANESE, 4, "すぐに"),
    ],
)
def test_a_cut_ends_a_sentence_or_else_a_word(text, budget, kept):
    assert cut_to_tokens(text, budget) == kept + CUT_MARK


def test_half_a_sentence_is_refused_where_whole_ones_are_asked_for():
    assert cut_to_tokens(ENGLISH, 4, whole_sentences=True) == ""


@given(st.text(alphabet=st.sampled_from("ab .。痛\u0301👩\u200d⚕"), max_size=200), st.integers(1, 60))
def test_a_cut_is_a_beginning_within_the_budget_that_parts_no_word(text, budget):
    cut = cut_to_tokens(text, budget)
    assert estimate_tokens(cut) <= budget
    if cut != text and cut:
        kept = cut.removesuffix(CUT_MARK)
        assert text.startswith(kept)
        assert not re.match(r"[ab]", text[len(kept) :]) or not re.search(r"[ab]$", kept)


def test_passages_are_taken_in_order_until_the_budget_is_used():
    found = within_budget([passage(ENGLISH, id="1"), passage(ENGLISH, id="2"), passage(ENGLISH, id="3")], 40, 4)
    assert [p.id for p in found] == ["1", "2"]
    assert found[0].text == ENGLISH
    assert found[1].text == "Call the number at once. Note the time when it began." + CUT_MARK


def test_a_second_passage_is_never_half_a_sentence():
    assert [p.id for p in within_budget([passage(ENGLISH, id="1"), passage(ENGLISH, id="2")], 27, 4)] == ["1"]


@pytest.mark.parametrize(("budget", "text"), [(4, "Call the [...]"), (1, "[...]")])
def test_the_first_passage_is_kept_however_small_the_budget(budget, text):
    (found,) = within_budget([passage(ENGLISH, id="1")], budget, 4)
    assert (found.id, found.text) == ("1", text)


def test_a_third_passage_of_a_document_makes_room_for_another_document():
    ranked = [passage("Short text.", document, f"{document}{n}") for document in "ab" for n in range(3)]
    assert [p.id for p in within_budget(ranked, 1000, 4)] == ["a0", "a1", "b0", "b1"]
    assert [p.id for p in within_budget(ranked, 1000, 3)] == ["a0", "a1", "b0"]


def test_nothing_found_stays_nothing():
    assert within_budget([], 100, 4) == ()
