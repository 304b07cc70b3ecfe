from __future__ import annotations

import csv
import json

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets import load_pairs, write_predictions
from dspy_mama.settings import DataSettings

VERDICT = {
    "outcome": "scored",
    "risk": True,
    "probability": 0.73,
    "reason": "@SUM(A1)",
    "citations": ["law#1", "law#2"],
}
UNSCORED = {"outcome": "parse", "risk": None, "probability": None, "reason": None, "error": "no label"}
RECORD = {
    "id": "ja1",
    "source": "sample",
    "language": "ja",
    "repeat": 0,
    "question": "頭が痛い\n=1+1",
    "answer": '=HYPERLINK("http://x")',
    "gold": {"medical": True, "ethical": False, "legal": None},
    "routing": {"specialty": "Neurology"},
    "phases": {
        "initial": {"medical": VERDICT, "ethical": VERDICT, "legal": UNSCORED},
        "verification": {"medical": VERDICT, "ethical": VERDICT, "legal": UNSCORED},
    },
    "final_phase": "verification",
    "verdicts": {"medical": "risky", "ethical": "risky", "legal": "undetermined"},
    "needs_review": True,
    "seconds": float("nan"),
}


def read(path):
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def test_jsonl_holds_the_whole_record(tmp_path):
    path = write_predictions([RECORD, RECORD], tmp_path / "new" / "out.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0]) == {**RECORD, "seconds": None}
    assert "頭が痛い" in lines[0]


def test_csv_is_flat_and_marked_for_excel(tmp_path):
    path = write_predictions([RECORD], tmp_path / "out.csv")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    (row,) = read(path)
    assert (row["id"], row["medical_verdict"], row["legal_verdict"]) == ("ja1", "risky", "undetermined")
    assert (row["medical_probability"], row["legal_probability"], row["legal_gold"]) == ("0.73", "", "")
    assert (row["legal_outcome"], row["legal_error"], row["needs_review"]) == ("parse", "no label", "TRUE")
    assert (row["medical_initial_risk"], row["medical_citations"]) == ("TRUE", "law#1 law#2")
    assert row["question"] == RECORD["question"]
    assert row["specialty"] == "Neurology"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "  =1", "＝1", "\n@x"])
def test_formulas_are_neutralised(tmp_path, text):
    (row,) = read(write_predictions([{**RECORD, "answer": text}], tmp_path / "out.csv"))
    assert row["answer"] == f"'{text}"


def test_usual_text_is_left_alone(tmp_path):
    (row,) = read(write_predictions([{**RECORD, "answer": 'a = b, "c"'}], tmp_path / "out.csv"))
    assert row["answer"] == 'a = b, "c"'


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_half_characters_do_not_stop_the_writing(tmp_path, name):
    path = write_predictions([{**RECORD, "answer": "x\ud83dy\0"}], tmp_path / name)
    text = path.read_text(encoding="utf-8-sig")
    assert "x" in text
    if name == "out.jsonl":
        assert json.loads(text)["answer"] == "x\ud83dy\0"


def test_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("old")

    def broken():
        yield RECORD
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        write_predictions(broken(), path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]


def test_records_may_lack_everything(tmp_path):
    (row,) = read(write_predictions([{"id": "a"}], tmp_path / "out.csv"))
    assert row["id"] == "a"
    assert read(write_predictions([], tmp_path / "none.csv")) == []


def test_other_targets_are_refused(tmp_path):
    for target in (tmp_path / "out.xlsx", tmp_path):
        with pytest.raises(DeclarationError, match=r"\.jsonl or \.csv"):
            write_predictions([], target)
    (tmp_path / "file").write_text("")
    with pytest.raises(DeclarationError, match="cannot be written"):
        write_predictions([], tmp_path / "file" / "out.csv")


def test_written_csv_is_read_back_as_a_table(tmp_path):
    path = write_predictions([RECORD], tmp_path / "out.csv")
    (pair,) = load_pairs(DataSettings(name="table", path=str(path), columns={"medical": "medical_gold"})).pairs
    assert (pair.id, pair.question, pair.gold["medical"]) == ("ja1", RECORD["question"], True)
