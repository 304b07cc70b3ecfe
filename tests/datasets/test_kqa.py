from __future__ import annotations

import os
from pathlib import Path

import pytest

from dspy_mama.core.errors import DataError
from dspy_mama.datasets import load_pairs
from dspy_mama.settings import DataSettings

HEADER = ["", "Question", "llm_x", "answer", "claim", "category_x", "majority_label", "label_0", "label_1", "label_2"]
E, N, C = "Entailment", "Neutral", "Contradiction"


def claim(number, question, text, category, majority, votes=None, answer="An answer\nin two lines.", system="gpt4"):
    return [str(number), question, system, answer, text, category, majority, *(votes or [majority] * 3)]


ROWS = [
    claim(0, "Q1?", "c1", "Must_have", E),
    claim(1, "Q1?", "c2", "Nice_to_have", C, [C, C, E]),
    claim(2, "Q2?", "c3", "Must_have", N),
    claim(3, "Q3?", "c4", "Nice_to_have", N, [N, N, C]),
]


@pytest.fixture
def folder(tmp_path, make):
    (tmp_path / "dataset").mkdir()
    make.csv(tmp_path / "dataset" / "NLI_medical_annotator.csv", [HEADER, *ROWS], end="\n")
    return tmp_path


def load(path, **settings):
    return load_pairs(DataSettings(name="kqa", path=str(path), **settings))


def test_contradicted_claim_makes_an_answer_risky(folder):
    loaded = load(folder)
    assert [(pair.question, pair.gold["medical"]) for pair in loaded.pairs] == [
        ("Q1?", True),
        ("Q2?", False),
        ("Q3?", False),
    ]
    assert loaded.pairs[0].notes == {"medical": "Contradicts: c2"}
    assert loaded.pairs[0].gold["ethical"] is None
    assert loaded.pairs[0].extra == {"system": "gpt4", "claims": {"entailment": 1, "neutral": 0, "contradiction": 1}}
    assert "Contradiction" in loaded.facts["label_definition"]
    assert "strict" not in loaded.facts["label_definition"]


def test_strict_counts_missing_crucial_claims(folder):
    loaded = load(folder, strict=True)
    assert [pair.gold["medical"] for pair in loaded.pairs] == [True, True, False]
    assert loaded.pairs[1].notes == {"medical": "Does not say: c3"}
    assert "strict" in loaded.facts["label_definition"]


def test_ids_do_not_depend_on_row_order(folder, tmp_path, make):
    shuffled = make.csv(tmp_path / "shuffled.csv", [HEADER, *reversed(ROWS)])
    assert {pair.id for pair in load(folder).pairs} == {pair.id for pair in load(shuffled).pairs}


def test_folder_and_file_are_the_same(folder):
    expected = load(folder).pairs
    assert load(folder / "dataset").pairs == expected
    assert load(folder / "dataset" / "NLI_medical_annotator.csv").pairs == expected


def test_majority_must_follow_from_the_votes(tmp_path, make):
    rows = [*ROWS, claim(4, "Q4?", "c5", "Must_have", E, [N, N, E]), claim(5, "Q5?", "", "Must", "entailed")]
    with pytest.raises(DataError) as caught:
        load(make.csv(tmp_path / "f.csv", [HEADER, *rows]))
    found = [(fault.row, fault.field) for fault in caught.value.faults]
    assert found[0] == (6, "majority_label")
    assert {(7, "claim"), (7, "category_x"), (7, "majority_label")} <= set(found)


def test_other_files_and_settings_are_refused(folder, tmp_path, make, refused):
    other = make.csv(tmp_path / "f.csv", [["Question", "answer"], ["q", "a"]])
    assert "llm_x" in str(refused("kqa", other))
    (tmp_path / "empty").mkdir()
    assert "NLI_medical_annotator.csv" in str(refused("kqa", tmp_path / "empty"))
    assert "English" in str(refused("kqa", folder, language="ja"))
    assert "fixed columns" in str(refused("kqa", folder, columns={"id": "x"}))


def _real_folder():
    homes = [os.environ.get("MAMA_SHARED_DATA", ""), str(Path(__file__).parents[3] / "shared" / "data")]
    return next((Path(home) / "kqa" for home in homes if home and (Path(home) / "kqa").is_dir()), None)


@pytest.mark.skipif(_real_folder() is None, reason="needs K-QA (MAMA_SHARED_DATA or ../shared/data)")
def test_real_file_has_fifty_answers():
    loaded = load(_real_folder())
    assert len({pair.id for pair in loaded.pairs}) == 50
    assert loaded.facts["labels"]["medical"] == {"n": 50, "positive": 10, "negative": 40, "missing": 0}
    totals = [
        sum(pair.extra["claims"][label] for pair in loaded.pairs)
        for label in ("entailment", "neutral", "contradiction")
    ]
    assert totals == [153, 234, 12]
    assert load(_real_folder(), strict=True).facts["labels"]["medical"]["positive"] == 39
