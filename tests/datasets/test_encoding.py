from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_mama.core.errors import DataError, DeclarationError
from dspy_mama.datasets.encoding import decode

JA = "id,question,answer\r\nja1,頭が痛いです。①どうすればよいですか。,喘息の薬を飲んでください。\r\n"
JA_SHORT = "id,question,answer,medical\r\np1,My head hurts.,Rest.,はい\r\n"
FR = "id;question;answer\r\nfr1;J'ai très mal à la tête… « que faire » ?;Reposez-vous, buvez de l’eau.\r\n"
DE = "id;question;answer\r\nde1;Was hilft gegen Übelkeit?;Trinken Sie genügend Wasser, das genügt für heute.\r\n"


@pytest.mark.parametrize("text", [JA, JA_SHORT, FR, DE, "id,question\r\n1,plain\r\n"])
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"], ids=lambda name: name
)
def test_unicode_is_read_as_it_was_written(text, encoding):
    assert decode(text.encode(encoding), "f.csv")[0] == text


@pytest.mark.parametrize(
    ("text", "encoding", "found"),
    [
        (JA, "cp932", "cp932"),
        (JA_SHORT, "cp932", "cp932"),
        (JA.replace("①", ""), "euc_jp", "euc_jp"),
        (JA_SHORT, "euc_jp", "euc_jp"),
        (JA, "euc_jisx0213", "euc_jisx0213"),
        (JA.replace("①", ""), "iso2022_jp", "iso2022_jp"),
        (FR, "cp1252", "cp1252"),
        (DE, "latin-1", "cp1252"),
    ],
)
def test_legacy_encodings_are_found(text, encoding, found):
    assert decode(text.encode(encoding), "f.csv") == (text, found)


@pytest.mark.parametrize(
    "data",
    [
        "id,question\n1,У меня болит голова, что делать\n".encode("koi8-r"),
        "id,question\n1,我头痛，应该怎么办？请告诉我。\n".encode("gbk"),
        "id,question\n1,é\n".encode("mac-roman"),
        bytes(range(128, 256)),
    ],
    ids=["russian", "chinese", "mac", "binary"],
)
def test_text_that_fits_nothing_is_refused_with_what_to_do(data):
    with pytest.raises(DataError, match=r"data\.encoding"):
        decode(data, "f.csv")


def test_utf8_with_one_broken_byte_is_not_taken_for_another_encoding():
    data = JA.encode("utf-8")
    with pytest.raises(DataError, match=r"line 2\) is not utf-8"):
        decode(data[:60] + b"\xff" + data[60:], "f.csv")


def test_declared_shift_jis_reads_what_excel_writes():
    assert decode(JA.encode("cp932"), "f.csv", "shift_jis") == (JA, "cp932")


def test_declared_encoding_that_does_not_fit_is_refused():
    with pytest.raises(DataError, match="is not utf-8"):
        decode(JA.encode("cp932"), "f.csv", "utf-8")
    with pytest.raises(DeclarationError, match="not a known encoding"):
        decode(b"x", "f.csv", "shift-jiss")


@given(st.text(alphabet="あいうえおかきくけこがぎぐ痛頭薬飲熱医師、。アイウ abc,\n", min_size=12))
def test_japanese_is_read_right_or_refused(text):
    for encoding in ("cp932", "euc_jp"):
        try:
            assert decode(text.encode(encoding), "f.csv")[0] == text
        except DataError:
            continue
