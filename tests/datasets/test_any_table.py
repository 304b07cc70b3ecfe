from __future__ import annotations

import json
import re

import pytest

from dspy_mama.core.errors import DataError
from dspy_mama.datasets import load_pairs, pairs_from_dataset, split_of
from dspy_mama.settings import DataSettings


def load(path, **settings):
    return load_pairs(DataSettings(name="table", path=str(path), **settings))


@pytest.mark.parametrize(
    "header",
    [
        ["id", "question", "answer", "medical"],
        ["ID", " Question ", "ANSWER", "Medical_Risk"],
        ["\ufeffid", "Prompt", "Response", "medicalRisk"],
        ["Id", "質問", "回答", "medical risk"],
        ["id", "question_en", "answer_en", "medical"],
    ],
)
def test_columns_are_found_by_name(tmp_path, make, header):
    (pair,) = load(make.csv(tmp_path / "f.csv", [header, ["p1", "q", "a", "yes"]])).pairs
    assert (pair.id, pair.question, pair.answer, pair.gold["medical"]) == ("p1", "q", "a", True)
    assert (pair.source, pair.language) == ("table", "en")


def test_columns_are_declared(tmp_path, make):
    header = ["Nr", "Frage des Patienten", "Bot", "riskant", "warum", "Sprache", "rest"]
    path = make.csv(tmp_path / "f.csv", [header, ["7", "q", "a", "1", "because", "DE", "kept"]], delimiter=";")
    columns = {
        "id": "Nr",
        "question": "Frage des Patienten",
        "answer": "bot",
        "medical": "riskant",
        "medical_note": "warum",
        "language": "Sprache",
    }
    (pair,) = load(path, columns=columns).pairs
    assert (pair.id, pair.question, pair.answer, pair.language) == ("7", "q", "a", "de")
    assert pair.gold == {"medical": True, "ethical": None, "legal": None}
    assert (pair.notes, pair.extra) == ({"medical": "because"}, {"rest": "kept"})


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"question": "Qestion"}, "no column 'Qestion'; .*id, question, answer"),
        ({"medcal": "id"}, "not a field; the fields are"),
        ({"question": "answer", "answer": "answer"}, "two fields"),
    ],
)
def test_wrong_declarations_are_refused(tmp_path, make, refused, columns, reason):
    path = make.csv(tmp_path / "f.csv", [["id", "question", "answer"], ["p1", "q", "a"]])
    assert re.search(reason, str(refused("table", path, columns=columns)))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (["id", "text", "answer"], "data.columns.question='id'"),
        (["id", "question", "answer", "Answer"], "could both be the answer"),
        (["id", "question", "answer", "answer"], "two columns have this name"),
        (["question", "answer", "medical", "medical_risk"], "could both be the medical"),
        (["id", "question_ja", "answer_ja"], "set data.language to one of: ja"),
    ],
)
def test_missing_and_ambiguous_columns_are_refused(tmp_path, make, refused, header, reason):
    path = make.csv(tmp_path / "f.csv", [header, ["p1", "q", "a", "b"][: len(header)]])
    assert reason in str(refused("table", path))


def test_blank_question_column_is_one_fault(tmp_path, make, refused):
    path = make.csv(tmp_path / "f.csv", [["id", "question", "answer"], ["p1", "", "a"], ["p2", "", "b"]])
    error = refused("table", path)
    assert isinstance(error, DataError)
    assert len(error.faults) == 1
    assert "blank in every row" in str(error)


def test_ids_without_a_column_hold_row_and_content(tmp_path, make):
    header, rows = ["question", "answer"], [["q1", "a1"], ["q1", "a1"], ["q2", "a2"]]
    first = load(make.csv(tmp_path / "f.csv", [header, *rows])).pairs
    assert [pair.id[:6] for pair in first] == ["row-2-", "row-3-", "row-4-"]
    again = load(make.csv(tmp_path / "g.csv", [header, *rows], end="\n")).pairs
    assert [pair.id for pair in again] == [pair.id for pair in first]
    changed = load(make.csv(tmp_path / "h.csv", [header, ["q1", "other"], *rows[1:]])).pairs
    assert changed[0].id != first[0].id
    assert changed[1].id == first[1].id


def test_ids_that_a_spreadsheet_made_floats_are_mended(tmp_path, make):
    rows = [["id", "question", "answer"], ["1.0", "q", "a"], ["2.0", "q", "a"]]
    loaded = load(make.csv(tmp_path / "f.csv", rows))
    assert [pair.id for pair in loaded.pairs] == ["1", "2"]
    assert any("whole numbers" in notice for notice in loaded.facts["notices"])
    versions = [["id", "question", "answer"], ["1.0", "q", "a"], ["1.1", "q", "a"]]
    assert [pair.id for pair in load(make.csv(tmp_path / "g.csv", versions)).pairs] == ["1.0", "1.1"]


def test_mended_ids_that_fall_together_are_refused(tmp_path, make, refused):
    path = make.csv(tmp_path / "f.csv", [["id", "question", "answer"], ["1.0", "q", "a"], ["1", "q", "a"]])
    assert "row 2 too" in str(refused("table", path))


def test_texts_are_kept_exactly(tmp_path, make):
    text = '  NA  \n=1+1, "quoted"; 007 \u3000'
    (pair,) = load(make.csv(tmp_path / "f.csv", [["id", "question", "answer"], [" p1 ", text, "null"]])).pairs
    assert (pair.id, pair.question, pair.answer) == ("p1", text, "null")


def test_kana_prove_japanese_in_unmarked_columns(tmp_path, make):
    rows = [["id", "question", "answer"], ["p1", "頭が痛いです", "はい"], ["p2", "My head hurts", "Yes"]]
    assert [pair.language for pair in load(make.csv(tmp_path / "f.csv", rows)).pairs] == ["ja", "en"]


def test_marked_cells_are_faults_only_where_they_are_used(tmp_path, refused):
    path = tmp_path / "f.jsonl"
    lines = [
        {"id": "a", "question": "q", "answer": "x\0y", "other": "ok"},
        {"id": "b", "question": "q", "answer": "fine", "other": "x\0y"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    error = refused("table", path)
    assert [(fault.row, fault.field) for fault in error.faults] == [(1, "answer")]
    assert "NUL" in str(error)


def test_nested_values_are_no_texts(tmp_path, refused):
    path = tmp_path / "f.jsonl"
    path.write_text('{"question": [{"role": "user", "content": "q"}], "answer": "a", "other": {"kept": 1}}\n')
    error = refused("table", path)
    assert [(fault.row, fault.field) for fault in error.faults] == [(1, "question")]
    assert "not text" in str(error)


def test_formula_without_value_is_a_fault(tmp_path, make, refused):
    path = make.xlsx(tmp_path / "f.xlsx", s=[["id", "question", "answer"], ["p1", "=A1", "a"]])
    assert "row 2, column 'question': a formula" in str(refused("table", path))


def test_ratings_of_another_shape_are_kept_as_text(tmp_path, make):
    rows = [["id", "question", "answer", "fluency", "helpfulness"], ["p1", "q", "a", "4.2", "[1,2,3,4,5]"]]
    (pair,) = load(make.csv(tmp_path / "f.csv", rows)).pairs
    assert pair.extra == {"fluency": "4.2", "helpfulness": [1, 2, 3, 4, 5]}


def test_workbook_with_one_fitting_sheet(tmp_path, make, refused):
    pairs = [["id", "question", "answer"], ["p1", "q", "a"]]
    path = make.xlsx(tmp_path / "f.xlsx", legend=[["code", "meaning"], ["1", "risky"]], data=pairs)
    assert [pair.id for pair in load(path).pairs] == ["p1"]
    both = make.xlsx(tmp_path / "g.xlsx", one=pairs, two=pairs)
    assert "several sheets" in str(refused("table", both))


def test_sheets_without_rows_do_not_stand_in_the_way_of_the_one_with_pairs(tmp_path, make, refused):
    pairs = [["id", "question", "answer"], ["p1", "q", "a"]]
    path = make.xlsx(tmp_path / "f.xlsx", title=[["Audit of May"]], data=pairs, empty=[])
    assert [pair.id for pair in load(path).pairs] == ["p1"]
    assert str(tmp_path / "g.xlsx") in str(refused("table", make.xlsx(tmp_path / "g.xlsx", Sheet1=[])))


def test_folder_of_one_file_is_that_file(tmp_path, make, refused):
    make.csv(tmp_path / "f.csv", [["id", "question", "answer"], ["p1", "q", "a"]])
    assert len(load(tmp_path).pairs) == 1
    make.csv(tmp_path / "g.csv", [["id", "question", "answer"], ["p1", "q", "a"]])
    assert "f.csv, g.csv" in str(refused("table", tmp_path))


def test_selection_by_ids_split_and_limit(tmp_path, make, refused):
    rows = [[f"p{n}", "q", "a"] for n in range(50)]
    path = make.csv(tmp_path / "f.csv", [["id", "question", "answer"], *rows])
    assert [pair.id for pair in load(path, limit=3).pairs] == ["p0", "p1", "p2"]
    assert [pair.id for pair in load(path, ids=("p9", "p4")).pairs] == ["p4", "p9"]
    parts = [{pair.id for pair in load(path, split=split).pairs} for split in ("train", "dev", "test")]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 50
    loaded = load(path, split="train", limit=5)
    assert (loaded.facts["pairs"], loaded.facts["selected"]) == (50, 5)
    assert "not in the data: p99" in str(refused("table", path, ids=("p1", "p99")))


def test_empty_selection_is_an_error(tmp_path, make, refused):
    path = make.csv(tmp_path / "f.csv", [["id", "question", "answer"], ["p1", "q", "a"]])
    splits = [s for s in ("train", "dev", "test") if s != split_of("p1")]
    assert "holds no usable pair" in str(refused("table", path, split=splits[0]))


def test_hugging_face_dataset_in_memory():
    from datasets import Dataset

    dataset = Dataset.from_list([{"id": 1, "question": "q", "answer": "a", "medical": True, "legal": None}])
    (pair,) = pairs_from_dataset(dataset).pairs
    assert (pair.id, pair.gold) == ("1", {"medical": True, "ethical": None, "legal": None})
    with pytest.raises(DataError, match="row 1, column 'answer': empty"):
        pairs_from_dataset(
            Dataset.from_list([{"id": 1, "question": "q", "answer": ""}, {"id": 2, "question": "q", "answer": "a"}])
        )


def test_a_split_that_does_not_exist_is_refused(tmp_path, refused):
    path = tmp_path / "pairs.csv"
    path.write_text("id,question,answer\na,q,r\n")
    assert "data.split: 'validation' is none of train, dev, test" in str(refused("table", path, split="validation"))
