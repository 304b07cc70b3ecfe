import json

import numpy as np
import pytest

from dspy_mama.core.errors import DataError, DeclarationError
from dspy_mama.datasets import read_labels


def write(tmp_path, text, name="p.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "header",
    [
        "id,medicalRisk,ethicalRisk,legalRisk",
        "ID,medical_risk,ethical_risk,legal_risk",
        "id,medical,ethical,legal",
        "id,Medical label,Ethical label,Legal label",
        "id,medical_verdict,ethical_pred,legal_predicted",
    ],
)
def test_our_names_and_the_shared_task_names_are_found(tmp_path, header):
    found = read_labels(write(tmp_path, f"{header}\nja1,TRUE,0,\nja2,no,yes,TRUE\n"), "predictions")
    assert found.ids == ("ja1", "ja2")
    assert [found.labels[d].tolist() for d in ("medical", "ethical", "legal")] == [[1, 0], [0, 1], [-1, 1]]


def test_one_file_holds_gold_and_predictions_side_by_side(tmp_path):
    path = write(tmp_path, "id,medical_gold,medical_verdict,medical_probability\na,TRUE,safe,0.2\nb,,undetermined,\n")
    gold, said = read_labels(path, "gold"), read_labels(path, "predictions")
    assert gold.labels["medical"].tolist() == [1, -1]
    assert said.labels["medical"].tolist() == [0, -1]
    assert said.probability["medical"][0] == 0.2
    assert np.isnan(said.probability["medical"][1])
    assert gold.probability == {}


def test_json_lines_give_native_values(tmp_path):
    rows = [{"id": 1, "medicalRisk": True, "p_legal": 0.25}, {"id": 2, "medicalRisk": None, "p_legal": 1}]
    found = read_labels(write(tmp_path, "\n".join(map(json.dumps, rows)), "p.jsonl"), "predictions")
    assert found.ids == ("1", "2")
    assert found.labels["medical"].tolist() == [1, -1]
    assert found.probability["legal"].tolist() == [0.25, 1.0]


def test_a_file_of_one_domain_may_call_its_columns_label_and_score(tmp_path):
    found = read_labels(write(tmp_path, "id,label,score\na,risky,0.9\nb,safe,0.1\n"), "predictions", only="legal")
    assert found.labels["legal"].tolist() == [1, 0]
    assert found.probability["legal"].tolist() == [0.9, 0.1]
    assert set(found.labels) == {"legal"}


def test_columns_can_be_declared(tmp_path):
    path = write(tmp_path, "case,m\na,1\n")
    found = read_labels(path, "gold", columns={"id": "case", "medical": "m"})
    assert found.ids == ("a",)
    with pytest.raises(DeclarationError, match="has the columns: case, m"):
        read_labels(path, "gold", columns={"medical": "x"})
    with pytest.raises(DeclarationError, match="not a field"):
        read_labels(path, "gold", columns={"risk": "m"})


def test_every_wrong_cell_is_named_by_row_and_column(tmp_path):
    path = write(tmp_path, "id,medical,p_medical\na,Border,0.5\na,TRUE,1.5\n,FALSE,high\n")
    with pytest.raises(DataError) as caught:
        read_labels(path, "predictions")
    said = str(caught.value)
    for part in ("row 2, column 'medical'", "'1.5' is not a probability", "'high'", "no id", "the id 'a' is in row 2"):
        assert part in said
    assert len(caught.value.faults) == 5


def test_gold_is_a_label_or_blank_and_never_unsure(tmp_path):
    path = write(tmp_path, "id,medical\na,undetermined\n")
    with pytest.raises(DataError, match="not a label"):
        read_labels(path, "gold")
    assert read_labels(path, "predictions").labels["medical"].tolist() == [-1]


def test_two_columns_for_one_label_and_none_at_all_are_refused(tmp_path):
    with pytest.raises(DataError, match="could both be the medical"):
        read_labels(write(tmp_path, "id,medicalRisk,medical_label\na,1,0\n"), "gold")
    with pytest.raises(DataError, match="no column of gold was found"):
        read_labels(write(tmp_path, "id,text\na,b\n"), "gold")
    with pytest.raises(DeclarationError, match="no such file"):
        read_labels(tmp_path / "absent.csv", "gold")


def test_ids_that_a_spreadsheet_made_numbers_meet_their_gold(tmp_path):
    assert read_labels(write(tmp_path, "id,medical\n7.0,1\n8.0,0\n"), "gold").ids == ("7", "8")
    assert read_labels(write(tmp_path, "id,medical\n7.5,1\n8.0,0\n"), "gold").ids == ("7.5", "8.0")


def test_repeats_make_an_id_unique(tmp_path):
    found = read_labels(write(tmp_path, "id,repeat,medical\na,0,1\na,1,0\n"), "predictions")
    assert found.repeats.tolist() == [0, 1]


def test_workbooks_and_parquet_are_read(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"id": ["a", "b"], "medicalRisk": [True, False], "p_medical": [0.75, 0.1]})
    frame.to_excel(tmp_path / "p.xlsx", index=False)
    frame.to_parquet(tmp_path / "p.parquet")
    for name in ("p.xlsx", "p.parquet"):
        found = read_labels(tmp_path / name, "predictions")
        assert found.labels["medical"].tolist() == [1, 0]
        assert found.probability["medical"].tolist() == [0.75, 0.1]
