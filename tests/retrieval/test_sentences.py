import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_mama.retrieval.sentences import sentence_ends, soft_end


def sentences(text: str) -> list[str]:
    ends = sentence_ends(text)
    return [text[a:b].strip() for a, b in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Take it. Then rest.", ["Take it.", "Then rest."]),
        ("See Dr. Smith, e.g. today. Go now!", ["See Dr. Smith, e.g. today.", "Go now!"]),
        ("Act No. 201, Art. 17 applies. It binds.", ["Act No. 201, Art. 17 applies.", "It binds."]),
        ("Is it safe? No. Ask first.", ["Is it safe?", "No.", "Ask first."]),
        ("John F. Kennedy had it. So what?", ["John F. Kennedy had it.", "So what?"]),
        ("It is hepatitis B. Get tested.", ["It is hepatitis B.", "Get tested."]),
        ("The U.S. Food rule holds. Yes.", ["The U.S. Food rule holds.", "Yes."]),
        ("Take 2.5 mg. Not 3.", ["Take 2.5 mg.", "Not 3."]),
        ('He said "Stop." Then left.', ['He said "Stop."', "Then left."]),
        ('"Why?" she asked. Then left.', ['"Why?" she asked.', "Then left."]),
        ("Steps:\n1. Wash.\n2. Dry.", ["Steps:", "1. Wash.", "2. Dry."]),
        ("One line\ngoes on here. End.", ["One line\ngoes on here.", "End."]),
        ("頭が痛い。病院へ行く。", ["頭が痛い。", "病院へ行く。"]),
        ("本当ですか？はい！行きます。", ["本当ですか？", "はい！", "行きます。"]),
        ("彼は「痛い。」と言った。終わり。", ["彼は「痛い。」と言った。", "終わり。"]),
        ("「痛い。」\n次の文。", ["「痛い。」", "次の文。"]),
        ("（注意する。）次の文。", ["（注意する。）", "次の文。"]),
        ("濃度は３．５である．次に進む．", ["濃度は３．５である．", "次に進む．"]),
    ],
)
def test_sentences_end_where_a_reader_says(text, expected):
    assert sentences(text) == expected


def test_an_empty_text_has_no_sentence():
    assert sentence_ends("") == []


@given(st.text(alphabet=st.sampled_from("ab. !?\n。」「１．Dr#-")))
def test_ends_rise_and_cover_the_text(text):
    ends = sentence_ends(text)
    assert ends == sorted(set(ends))
    assert not text or (ends[-1] == len(text) and ends[0] > 0)


@given(st.text(min_size=2, max_size=40), st.integers(1, 30))
def test_a_soft_end_makes_progress_within_its_limit(text, limit):
    assert 0 < soft_end(text, 0, limit) <= max(limit, 1) or limit >= len(text)


@pytest.mark.parametrize("unit", ["e\u0301", "か\u3099", "👩\u200d⚕\ufe0f", "👍🏽", "🇯🇵", "ｶﾞ"])
def test_a_soft_end_keeps_what_a_reader_sees_as_one_character(unit):
    text = unit * 20
    for limit in range(len(unit), len(text)):
        end = soft_end(text, 0, limit)
        assert end % len(unit) == 0, (unit, limit, end)
        assert unicodedata.category(text[end]) != "Mn"
