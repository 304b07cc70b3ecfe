from __future__ import annotations

import pytest

from dspy_mama.datasets.cells import id_fault, parse_counts, parse_label, text_doubt, text_fault


@pytest.mark.parametrize(
    "text", ["TRUE", "True", " true ", "1", "1.0", "yes", "Y", "はい", "ＴＲＵＥ", "１", "WAHR", "VRAI", "oui", "ja"]
)
def test_risky_labels(text):
    assert parse_label(text) is True


@pytest.mark.parametrize("text", ["FALSE", "False", "0", "0.0", "no", "いいえ", "FALSCH", "FAUX", "nein", "なし"])
def test_safe_labels(text):
    assert parse_label(text) is False


@pytest.mark.parametrize("text", ["", "  ", "\u3000", "\ufeff", "\u00a0"])
def test_blank_is_no_label(text):
    assert parse_label(text) is None


@pytest.mark.parametrize(
    "text", ["Border", "N/A", "2", "maybe", "-", "TRUE?", "true false", "#N/A", "nan", "None", "-1", "10"]
)
def test_anything_else_is_a_fault_never_a_label(text):
    with pytest.raises(ValueError, match=r"is not a label|spreadsheet error"):
        parse_label(text)


@pytest.mark.parametrize(
    "text", ["[1, 5, 9, 45, 19]", "1,5,9,45,19", "[1 5 9 45 19]", " ( 1;5;9;45;19 ) ", "［１、５、９、４５、１９］"]
)
def test_counts_are_read_tolerantly(text):
    assert parse_counts(text) == [1, 5, 9, 45, 19]


@pytest.mark.parametrize(
    "text", ["[1, 5, 9, 45]", "[1,5,9,45,19,0]", "[1, 5, 9, -45, 19]", "[1.5, 2, 3, 4, 5]", "four", "[]"]
)
def test_counts_of_another_shape_are_a_fault(text):
    with pytest.raises(ValueError, match="list of 5 counts"):
        parse_counts(text)
    assert parse_counts(" ") is None


@pytest.mark.parametrize(
    "text", ["2024-01-02 00:00:00", "2024/1/2", "1月2日", "2-Jan", "Jan-24", "1/2/2024", "02.01.2024"]
)
def test_dates_are_no_ids_of_a_spreadsheet(text):
    assert "date" in id_fault(text, from_spreadsheet=True)
    assert id_fault(text, from_spreadsheet=False) is None


@pytest.mark.parametrize("text", ["", "#REF!", "#N/A", "1.23E+12", "a\nb", "x" * 201])
def test_other_ids_that_are_none(text):
    assert id_fault(text, from_spreadsheet=True)


@pytest.mark.parametrize("text", ["ja1", "1", "de-10", "2024-ja-1", "質問1", "E10", "v1.5"])
def test_usual_ids_pass(text):
    assert id_fault(text, from_spreadsheet=True) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#REF!", "spreadsheet error"),
        ("x" * 100_001, "more than 100,000"),
        ("??????????", "question marks"),
        ("caf\ufffd tr\ufffds", "U+FFFD"),
        ("très mal à la tête".encode().decode("cp1252"), "UTF-8 opened in another"),
        ("頭が痛いです".encode().decode("latin-1"), "UTF-8 opened in another"),
        ("頭が痛い".encode().decode("cp932", "ignore"), "UTF-8 opened in another"),
    ],
)
def test_broken_texts_are_named(text, reason):
    assert reason in text_fault(text)


@pytest.mark.parametrize(
    "text",
    [
        "What??",
        "très mal à la tête",
        "頭が痛い。薬は？",
        "x" * 100_000,
        "39.5 °C – naïve “quote”",
        "Ａ社の薬ｱｽﾋﾟﾘﾝ",
        "=1+1",
        "Übelkeit? Ja!",
    ],
)
def test_usual_texts_pass(text):
    assert text_fault(text) is None


def test_doubtful_texts_are_usable_but_named():
    assert "Excel's limit" in text_doubt("x" * 32_767)
    assert "U+FFFD" in text_doubt("A long answer with one broken emoji \ufffd. " + "y" * 200)
    assert text_doubt("fine") is None
