import pytest

from dspy_mama.core.errors import DataError, DeclarationError
from dspy_mama.core.patient_case import PatientCase
from dspy_mama.datasets.diseases import diseases_of, load_disease_table
from dspy_mama.settings import DataSettings


def load(path, **settings):
    return load_disease_table(DataSettings(name="table", path=str(path), **settings))


def test_every_disease_of_some_cases_is_asked_once_under_its_first_spelling():
    cases = [
        PatientCase(str(number), {"": "text"}, diagnosis=name)
        for number, name in enumerate(("Fabry disease", "Fabry's disease", None, "Gaucher disease"))
    ]
    found = diseases_of(cases)
    assert [disease.diagnosis for disease in found] == ["Fabry disease", "Gaucher disease"]
    assert (found[0].id, found[0].text("primary")) == ("Fabry disease", "Fabry disease")


def test_a_table_of_diseases_names_its_empty_rows(tmp_path, make):
    path = make.csv(
        tmp_path / "d.csv", [["Disease", "Type"], ["Fabry  disease", "renal"], [" ", "bone"], ["Gaucher", ""]]
    )
    found, facts = load(path)
    assert [(disease.diagnosis, disease.group) for disease in found] == [("Fabry disease", "renal"), ("Gaucher", None)]
    assert facts["notices"] == ["row 3: names no disease"]
    assert [disease.id for disease in load(path, limit=1)[0]] == ["Fabry disease"]
    assert [disease.id for disease in load(path, ids=("Gaucher",))[0]] == ["Gaucher"]


def test_a_file_of_cases_is_a_table_of_diseases_too(tmp_path, make):
    path = make.csv(tmp_path / "c.csv", [["id", "story", "truth"], ["1", "Fever", "Malaria"]])
    found, _ = load(path, columns={"case": "story", "diagnosis": "truth"})
    assert [disease.diagnosis for disease in found] == ["Malaria"]


def test_a_table_without_diseases_says_so(tmp_path, make):
    with pytest.raises(DataError, match=r"data\.columns\.disease='story'"):
        load(make.csv(tmp_path / "c.csv", [["story"], ["Fever"]]))
    with pytest.raises(DataError, match="names no disease"):
        load(make.csv(tmp_path / "d.csv", [["disease", "group"], [" ", "bone"]]))
    with pytest.raises(DeclarationError, match=r"data\.columns"):
        load(make.csv(tmp_path / "e.csv", [["disease"], ["Malaria"]]), columns={"disease": "nothing"})
