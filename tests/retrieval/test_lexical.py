import logging

import numpy as np
import pytest

from dspy_mama.retrieval.lexical import LexicalIndex
from dspy_mama.retrieval.words import tokens_of


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Warfarin, and the INR!", ["warfarin", "inr"]),
        ("医師法第17条", ["医師", "師法", "法第", "17", "条"]),
        ("ＨｂＡ１ｃ 6.5％", ["hba1c", "6.5"]),
        ("#7119 patient's", ["7119", "patient's"]),
        ("薬", ["薬"]),
        ("ﾜﾙﾌｧﾘﾝ", ["ワル", "ルフ", "ファ", "ァリ", "リン"]),
        ("the of and", []),
        ("", []),
    ],
)
def test_words_and_pairs_of_japanese_letters_are_tokens(text, tokens):
    assert tokens_of(text) == tokens


def test_rare_words_count_more_and_strangers_nothing():
    index = LexicalIndex(["fever in children", "fever in adults", "heat stroke in adults", "薬を飲む"])
    scores = index.scores("children with fever")
    assert scores[0] > scores[1] > 0
    assert scores[2] == scores[3] == 0
    assert index.scores("飲む薬")[3] > 0


@pytest.mark.parametrize("texts", [[], ["", "the"], ["fever"]])
def test_nothing_known_scores_nothing(texts):
    scores = LexicalIndex(texts).scores("zebra 縞馬")
    assert scores.shape == (len(texts),)
    assert not scores.any()


def test_scores_equal_the_formula():
    texts = ["a1 b1 b1", "b1 c1", "d1 d1 d1 d1"]
    lengths, average, k1, b = [3, 2, 4], 3.0, 1.5, 0.75
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    counts = [2, 1, 0]
    wanted = [idf * c / (c + k1 * (1 - b + b * n / average)) for c, n in zip(counts, lengths, strict=True)]
    np.testing.assert_allclose(LexicalIndex(texts).scores("b1"), wanted, rtol=1e-5)


def test_the_package_is_kept_from_logging(caplog):
    with caplog.at_level(logging.DEBUG):
        LexicalIndex(["fever"])
    assert not [record for record in caplog.records if record.name == "bm25s"]
