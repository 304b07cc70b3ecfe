from __future__ import annotations

import json

import pytest

from dspy_mama.core.errors import DataError
from dspy_mama.datasets import load_pairs
from dspy_mama.settings import DataSettings


def load(path, language="ja", **options):
    return load_pairs(DataSettings(name="mednlp_chat", path=str(path), language=language), **options)


@pytest.mark.parametrize(
    ("encoding", "delimiter"),
    [("utf-8", ","), ("utf-8-sig", ";"), ("utf-16", "\t")],
)
def test_official_columns_in_the_encodings_of_excel(tmp_path, make, encoding, delimiter):
    path = make.csv(tmp_path / "train.csv", [make.JA, make.ja_row()], encoding, delimiter)
    (pair,) = load(path).pairs
    assert (pair.id, pair.language, pair.source) == ("ja1", "ja", "mednlp_chat")
    assert pair.question == make.ja_row()[1]
    assert dict(pair.gold) == {"medical": True, "ethical": False, "legal": False}
    assert dict(pair.notes) == {"medical": "薬の種類による。"}
    assert pair.extra["harmlessness"] == [1, 5, 9, 45, 19]
    assert pair.extra["question_fr"] == make.ja_row()[3]


@pytest.mark.parametrize("encoding", ["cp932", "euc_jp"])
def test_japanese_encodings(tmp_path, make, encoding):
    french = {"question_fr": "", "answer_fr": ""}
    path = make.csv(tmp_path / "train.csv", [make.JA, make.ja_row(**french)], encoding)
    loaded = load(path)
    assert loaded.pairs[0].question == make.ja_row()[1]
    assert loaded.facts["files"][0]["encoding"] == encoding
    assert any(encoding in notice for notice in loaded.facts["notices"])


@pytest.mark.parametrize(("language", "note"), [("en", "It depends on the drug."), ("fr", "It depends on the drug.")])
def test_language_chooses_texts_and_notes(tmp_path, make, language, note):
    path = make.csv(tmp_path / "train.csv", [make.JA, make.ja_row()])
    (pair,) = load(path, language).pairs
    assert pair.language == language
    assert pair.notes["medical"] == note


def test_xlsx_and_jsonl_give_the_same_pairs_as_csv(tmp_path, make):
    rows = [make.ja_row("ja1"), make.ja_row("ja2", medicalRisk="")]
    typed = [[{"TRUE": True, "FALSE": False}.get(cell, cell or None) for cell in row] for row in rows]
    path = make.csv(tmp_path / "a.csv", [make.JA, *rows])
    make.xlsx(tmp_path / "b.xlsx", data=[make.JA, *typed])
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps(dict(zip(make.JA, row, strict=True))) for row in typed))
    expected = load(path).pairs
    assert load(tmp_path / "b.xlsx").pairs == expected
    assert load(tmp_path / "c.jsonl").pairs == expected
    assert expected[1].gold["medical"] is None


def test_missing_language_says_which_are_there(tmp_path, make, refused):
    path = make.csv(tmp_path / "de.csv", [make.DE, make.de_row()])
    error = refused("mednlp_chat", path, language="ja")
    assert "no question and answer in 'ja'" in str(error)
    assert "de, en, fr" in str(error)


def test_column_that_is_blank_throughout_counts_as_missing(tmp_path, make, refused):
    path = make.csv(tmp_path / "ja.csv", [make.JA, make.ja_row(question_fr="", answer_fr="")])
    assert "it has en, ja" in str(refused("mednlp_chat", path, language="fr"))


@pytest.mark.parametrize("columns", [["id", "medicalRisk", "ethicalRisk", "legalRisk"], None])
def test_gold_sheet_alone_is_refused_with_what_to_do(tmp_path, make, refused, columns):
    blank = {name: "" for name in make.DE if name.startswith(("question", "answer"))}
    rows = [columns, ["de1", "TRUE", "FALSE", "FALSE"]] if columns else [make.DE, make.de_row(**blank)]
    error = refused("mednlp_chat", make.csv(tmp_path / "gold.csv", rows), language="de")
    assert "ids and labels but no question or answer" in str(error)
    assert "folder" in str(error)


def test_gold_sheet_is_joined_by_id_in_a_folder(tmp_path, make):
    unlabelled = {"medicalRisk": "", "ethicalRisk": "", "legalRisk": ""}
    make.csv(tmp_path / "texts.csv", [make.DE, make.de_row("de1", **unlabelled), make.de_row("de2", **unlabelled)])
    gold = [
        ["id", "medicalRisk", "ethicalRisk", "legalRisk"],
        ["de2", "FALSE", "TRUE", ""],
        ["de1", True, False, False],
    ]
    make.xlsx(tmp_path / "gold.xlsx", gold=gold)
    (tmp_path / "~$gold.xlsx").write_bytes(b"lock")
    loaded = load(tmp_path, "de")
    assert [(pair.id, pair.gold["medical"], pair.gold["legal"]) for pair in loaded.pairs] == [
        ("de1", True, False),
        ("de2", False, None),
    ]
    assert {file["name"] for file in loaded.facts["files"]} == {"texts.csv", "gold.xlsx"}


def test_folder_of_several_sets_gives_those_of_the_language(tmp_path, make):
    make.csv(tmp_path / "ja.csv", [make.JA, make.ja_row()])
    make.csv(tmp_path / "de.csv", [make.DE, make.de_row()])
    make.csv(tmp_path / "de_gold.csv", [["id", "medicalRisk"], ["de1", "FALSE"]])
    assert {pair.id for pair in load(tmp_path, "en").pairs} == {"ja1", "de1"}
    japanese = load(tmp_path, "ja")
    assert [pair.id for pair in japanese.pairs] == ["ja1"]
    assert any("de.csv left out" in notice for notice in japanese.facts["notices"])


def test_files_that_contradict_each_other_are_refused(tmp_path, make):
    make.csv(tmp_path / "a.csv", [make.DE, make.de_row(medicalRisk="TRUE")])
    make.csv(tmp_path / "b.csv", [make.DE, make.de_row(medicalRisk="FALSE", answer_de="Etwas anderes hilft auch.")])
    with pytest.raises(DataError) as caught:
        load(tmp_path, "de")
    assert {fault.field for fault in caught.value.faults} == {"medicalRisk", "answer_de"}
    assert "a.csv, row 2" in str(caught.value)


def test_gold_for_an_unknown_id_is_refused(tmp_path, make):
    make.csv(tmp_path / "a.csv", [make.DE, make.de_row("de1")])
    make.csv(tmp_path / "b.csv", [["id", "medicalRisk"], ["de1", "FALSE"], ["de9", "TRUE"]])
    with pytest.raises(DataError, match="no text for the id 'de9'") as caught:
        load(tmp_path, "de")
    assert caught.value.faults[0].row == 3


def test_every_fault_is_named_with_row_and_column(tmp_path, make):
    rows = [
        make.ja_row("ja1", medicalRisk="Border"),
        make.ja_row("ja2", question_ja="two\nlines", fluency="[1, 2]"),
        make.ja_row("ja3", answer_ja="  "),
        make.ja_row("ja4"),
        make.ja_row("ja4", answer_ja="#REF!"),
        make.ja_row("ja4"),
        make.ja_row(""),
    ]
    with pytest.raises(DataError) as caught:
        load(make.csv(tmp_path / "train.csv", [make.JA, *rows]))
    found = [(fault.row, fault.field) for fault in caught.value.faults]
    assert found == [
        (2, "medicalRisk"),
        (3, "fluency"),
        (4, "answer_ja"),
        (6, "answer_ja"),
        (7, "id"),
        (8, "id"),
    ]
    assert "'Border'" in str(caught.value)
    assert "row 5 too" in caught.value.faults[4].reason
    assert "rows as a spreadsheet counts them" in caught.value.faults[0].reason


def test_more_than_ten_faults_are_counted(tmp_path, make):
    rows = [make.ja_row(f"ja{n}", legalRisk="maybe") for n in range(15)]
    with pytest.raises(DataError, match=r"15 faults(.|\n)*and 5 more"):
        load(make.csv(tmp_path / "train.csv", [make.JA, *rows]))


def test_faulty_rows_are_dropped_on_demand_and_listed(tmp_path, make):
    rows = [make.ja_row("ja1"), make.ja_row("ja2", legalRisk="Border"), make.ja_row("ja3"), make.ja_row("ja3")]
    loaded = load(make.csv(tmp_path / "train.csv", [make.JA, *rows]), on_fault="drop")
    assert [pair.id for pair in loaded.pairs] == ["ja1"]
    assert [fault.row for fault in loaded.faults] == [3, 5]
    assert loaded.facts["dropped"][0] == {
        "file": "train.csv",
        "row": 3,
        "column": "legalRisk",
        "reason": loaded.faults[0].reason,
    }


def test_missing_labels_are_counted_per_domain(tmp_path, make):
    rows = [make.ja_row(f"ja{n}", legalRisk="" if n < 2 else "FALSE") for n in range(5)]
    labels = load(make.csv(tmp_path / "train.csv", [make.JA, *rows])).facts["labels"]
    assert labels["legal"] == {"n": 3, "positive": 0, "negative": 3, "missing": 2}
    assert labels["medical"] == {"n": 5, "positive": 5, "negative": 0, "missing": 0}


def test_file_of_another_layout_is_refused(tmp_path, make, refused):
    path = make.csv(tmp_path / "x.csv", [["a", "b"], ["1", "2"]])
    assert "data=table" in str(refused("mednlp_chat", path))


@pytest.mark.parametrize("where", [None, "missing"])
def test_path_must_be_there(tmp_path, refused, where):
    assert "data.path" in str(refused("mednlp_chat", where and tmp_path / where))


def test_folder_without_data_is_refused(tmp_path, refused):
    (tmp_path / "README.txt").write_text("hello")
    assert "no data file" in str(refused("mednlp_chat", tmp_path))


@pytest.mark.parametrize("language", ["ja", "en"])
def test_sample_has_forty_pairs_in_both_languages(language):
    loaded = load_pairs(DataSettings(language=language))
    assert len(loaded.pairs) == len({pair.id for pair in loaded.pairs}) == 40
    assert {domain: counts["positive"] for domain, counts in loaded.facts["labels"].items()} == {
        "medical": 15,
        "ethical": 7,
        "legal": 10,
    }
    assert "illustrative" in loaded.facts["label_definition"]
    assert len(loaded.facts["files"][0]["sha256"]) == 64


def test_sample_takes_no_path(tmp_path, refused):
    assert "data=table" in str(refused("sample", tmp_path))
