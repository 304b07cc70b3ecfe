import json

import pytest

from dspy_mama.core.errors import DataError, DeclarationError
from dspy_mama.datasets.cases import load_cases
from dspy_mama.settings import DataSettings


def load(path, **settings):
    return load_cases(DataSettings(name="table", path=str(path), **settings))


def test_a_csv_of_cases_needs_only_the_case(tmp_path, make):
    path = make.csv(tmp_path / "c.csv", [["Case"], ["Fever,\nfor a week"], ["Cough"]])
    cases = load(path).cases
    assert [case.text("primary") for case in cases] == ["Fever,\nfor a week", "Cough"]
    assert [case.diagnosis for case in cases] == [None, None]
    assert cases[0].id.startswith("row-2-")
    assert "the follow-up adds no further tests" in cases[0].notices


def test_a_csv_with_gold_and_further_tests(tmp_path, make):
    rows = [
        ["ID", "presentation", "Further Diagnostic Tests", "Final Name", "Type"],
        ["7", "Fever", "CT", " A  b ", "x"],
    ]
    (case,) = load(make.csv(tmp_path / "c.csv", rows)).cases
    assert (case.id, case.diagnosis, case.group) == ("7", "A b", "x")
    assert case.text("follow_up") == "Fever\n\nFurther Diagnostic Tests: CT"


def test_a_jsonl_with_sections_and_a_whole_follow_up(tmp_path):
    path = tmp_path / "c.jsonl"
    record = {"id": "a", "Basic Information": "A girl", "physical_examination": "", "follow_up": "All of it"}
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    (case,) = load(path).cases
    assert case.text("primary") == "Basic Information: A girl"
    assert case.text("follow_up") == "All of it"
    assert case.missing("primary") == ("Physical Examination",)


def test_columns_can_be_named(tmp_path, make):
    path = make.csv(tmp_path / "c.csv", [["story", "truth"], ["Fever", "Malaria"]])
    (case,) = load(path, columns={"case": "story", "diagnosis": "truth"}).cases
    assert (case.text("primary"), case.diagnosis) == ("Fever", "Malaria")


def test_faults_name_row_and_column(tmp_path, make):
    path = make.csv(tmp_path / "c.csv", [["id", "case"], ["a", "Fever"], ["a", "Cough"], ["b", " "]])
    with pytest.raises(DataError) as caught:
        load(path)
    assert {(fault.row, fault.field) for fault in caught.value.faults} == {(4, "case"), (None, "id")}


@pytest.mark.parametrize("columns", [{"case": "nothing"}, {"answer": "story"}])
def test_columns_that_do_not_fit_are_refused(tmp_path, make, columns):
    path = make.csv(tmp_path / "c.csv", [["story"], ["Fever"]])
    with pytest.raises(DeclarationError, match=r"data\.columns"):
        load(path, columns=columns)


def test_a_table_without_a_case_says_which_columns_there_are(tmp_path, make):
    with pytest.raises(DataError, match=r"data\.columns\.case='story'"):
        load(make.csv(tmp_path / "c.csv", [["story", "id"], ["Fever", "1"]]))


def test_a_row_whose_further_tests_are_blank_has_no_follow_up_of_its_own(tmp_path, make):
    rows = [["case", "further_tests"], ["Fever", "CT"], ["Cough", " "]]
    one, two = load(make.csv(tmp_path / "c.csv", rows)).cases
    assert (bool(one.further), bool(two.further)) == (True, False)
    assert "the follow-up adds no further tests" in two.notices
