from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from dspy_mama.core.errors import DataError, DeclarationError
from dspy_mama.core.patient_case import STAGES
from dspy_mama.datasets.cases import load_cases
from dspy_mama.settings import DataSettings

FIRST = {
    "Basic Information": "A 6-year-old girl.",
    "Clinical Presentation": "Seizures since birth.",
    "Physical Examination": "",
    "Past Medical History": "None reported.",
    "Initial Test Results": "Low platelets.",
}
LATER = {**FIRST, "Further Diagnostic Tests": "Deletion of 11q23 \u2212 jacobsen\u2009syndrome."}
PROSE = "Here is the restructured and anonymized medical information in JSON format:\n\n"


def twice(sections, before=""):
    return json.dumps(before + json.dumps(sections))


def row(number, name="Jacobsen Syndrome ", group="genetic", url=37470964, first=None, later=None):
    return {
        "Type": group,
        "Number": number,
        "Selected": "Yes",
        "Final Name": name,
        "Case URL": url,
        "Initial Presentation": first or twice(FIRST),
        "Follow-up Presentation": later or twice(LATER),
    }


def raw_control(sections):
    return json.dumps(json.dumps(sections).replace("\\t", "\t"))


ROWS = [
    row(0),
    row(1, "Beh\u00e7et disease", "Cardiac", "PMC123", twice(FIRST, PROSE), twice(LATER, PROSE)),
    row(2, "beh\u00e7et DISEASE", "cardiac", 36, raw_control({"a": "x\ty"}), raw_control({"a": "x\ty", "b": "XXX"})),
    row(3, "Triploidy", "rheumatologicaXXXildhood", later=twice({**LATER, "Initial Test Results": "XXX (69, XXX)"})),
    row(4, "Fabry disease", "renal", first="no JSON", later="no JSON at all"),
    row(5, "Wilson disease", "hepatic", first=json.dumps("only { prose"), later=twice(FIRST)),
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rare_disease_302.json"
    text = json.dumps({"Name": "n", "Time": "t", "Cases": ROWS}, indent=1).replace("\n", "\r\n")
    path.write_bytes(text.encode("ascii"))
    return path


def load(path, **settings):
    return load_cases(DataSettings(name="mac", path=str(path), **settings))


def by_id(path):
    return {case.id: case for case in load(path).cases}


def test_presentations_are_decoded_twice_and_the_follow_up_adds_its_own(file):
    case = by_id(file)["mac-0"]
    assert case.sections == FIRST
    assert list(case.further) == ["Further Diagnostic Tests"]
    assert (case.diagnosis, case.group, case.extra["reference"]) == ("Jacobsen Syndrome", "genetic", "PMID 37470964")
    assert "Physical Examination is empty" in case.notices
    assert "Further" not in case.text("primary")
    assert "Physical Examination" not in case.text("primary")
    assert (case.leaks("primary"), case.leaks("follow_up")) == (False, True)


def test_prose_around_the_json_is_cut_off_and_said(file):
    case = by_id(file)["mac-1"]
    assert case.sections == FIRST
    assert sum("prose around" in notice for notice in case.notices) == 2
    assert (case.group, case.extra["reference"]) == ("cardiac", "PMC123")


def test_a_raw_control_character_is_read_and_said(file):
    case = by_id(file)["mac-2"]
    assert (case.sections, case.further) == ({"a": "x\ty"}, {"b": "XXX"})
    assert any("control character" in notice for notice in case.notices)
    assert "words are masked with XXX" in case.notices


def test_a_karyotype_is_no_mask_and_a_masked_group_is_mended(file):
    case = by_id(file)["mac-3"]
    assert case.group == "rheumatologicalchildhood"
    assert not any("masked with" in notice for notice in case.notices)
    assert "the follow-up states Initial Test Results otherwise" in case.notices
    assert "69, XXX" in case.text("follow_up")
    assert "69, XXX" not in case.text("primary")


def test_what_cannot_be_decoded_is_shown_whole_and_said(file):
    cases = by_id(file)
    assert (cases["mac-4"].text("primary"), cases["mac-4"].text("follow_up")) == ("no JSON", "no JSON at all")
    assert any("plain text" in notice for notice in cases["mac-4"].notices)
    assert cases["mac-5"].text("primary") == "only { prose"
    assert any("cannot be split" in notice for notice in cases["mac-5"].notices)


def test_facts_say_what_a_reader_of_the_results_should_know(file):
    facts = load(file, ids=("mac-0", "mac-1", "mac-2")).facts
    assert (facts["cases"], facts["selected"]) == (6, 3)
    assert facts["groups"] == {"cardiac": 2, "genetic": 1}
    assert facts["leaks"] == {"primary": [], "follow_up": ["mac-0"]}
    assert facts["repeated_diagnoses"] == {"behçet disease": ["mac-1", "mac-2"]}
    assert facts["files"][0]["rows"] == 6
    assert len(facts["files"][0]["sha256"]) == 64


def test_file_and_folder_are_the_same(file):
    assert load(file.parent).cases == load(file).cases


def test_faults_are_all_named(tmp_path):
    broken = [row(0), {**row(1), "Final Name": " "}, "text", {"Type": "renal"}, row(0)]
    path = tmp_path / "f.json"
    path.write_text(json.dumps({"Cases": broken}), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load(path)
    found = {(fault.row, fault.field) for fault in caught.value.faults}
    assert {(1, "Final Name"), (2, None), (3, "Number"), (None, "Number")} <= found


@pytest.mark.parametrize("text", ["[]", "{}", '{"Cases": []}', "not json"])
def test_other_files_are_refused_in_one_clear_line(tmp_path, text):
    path = tmp_path / "f.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"Cases|JSON"):
        load(path)


def test_settings_that_do_not_apply_are_refused(file, tmp_path):
    for settings in ({"language": "ja"}, {"columns": {"id": "x"}}, {"ids": ("mac-99",)}, {"split": "all"}):
        with pytest.raises(DeclarationError, match="data"):
            load(file, **settings)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DeclarationError, match="rare_disease_302"):
        load(tmp_path / "empty")
    with pytest.raises(DeclarationError, match="holds no patients' cases"):
        load_cases(DataSettings(name="sample"))


def _real_file():
    homes = [os.environ.get("MAMA_SHARED_DATA", ""), str(Path(__file__).parents[3] / "shared" / "data")]
    files = [Path(home) / "mac" / "rare_disease_302.json" for home in homes if home]
    return next((file for file in files if file.is_file()), None)


@pytest.mark.skipif(_real_file() is None, reason="needs the MAC cases (MAMA_SHARED_DATA or ../shared/data)")
class TestRealFile:
    @pytest.fixture(scope="class")
    def loaded(self):
        return load(_real_file())

    def test_every_case_and_group_is_there(self, loaded):
        assert len(loaded.cases) == len({case.id for case in loaded.cases}) == 302
        assert len(loaded.facts["groups"]) == 33
        assert loaded.facts["groups"]["rheumatologicalchildhood"] == 7
        assert (min(loaded.facts["groups"].values()), max(loaded.facts["groups"].values())) == (5, 15)
        assert len({case.diagnosis for case in loaded.cases}) == 301
        assert loaded.facts["repeated_diagnoses"] == {"beckwith-wiedemann syndrome": ["mac-15", "mac-129"]}

    def test_every_text_is_split_into_its_sections(self, loaded):
        assert Counter(len(case.sections) for case in loaded.cases) == {5: 302}
        assert Counter(tuple(case.further) for case in loaded.cases) == {("Further Diagnostic Tests",): 302}
        assert all(case.diagnosis == case.diagnosis.strip() for case in loaded.cases)
        assert not any("{" in case.text("follow_up")[:40] for case in loaded.cases)

    def test_the_ten_odd_texts_are_read_and_said(self, loaded):
        notices = [notice for case in loaded.cases for notice in case.notices]
        assert sum("prose around" in notice for notice in notices) == 8
        assert sum("control character" in notice for notice in notices) == 2
        odd = {case.id for case in loaded.cases if any("Presentation:" in notice for notice in case.notices)}
        assert odd == {"mac-54", "mac-216", "mac-221", "mac-241", "mac-263"}

    def test_empty_fields_masks_and_references(self, loaded):
        assert [sum(len(case.missing(stage)) for case in loaded.cases) for stage in STAGES] == [23, 27]
        assert len([case for case in loaded.cases if case.missing("follow_up")]) == 22
        masked = {case.id for case in loaded.cases if "words are masked with XXX" in case.notices}
        assert masked == {f"mac-{n}" for n in (249, 252, 281, 282, 284, 285, 286)}
        kinds = Counter(case.extra["reference"][:4] for case in loaded.cases)
        assert (kinds["PMID"], sum(n for kind, n in kinds.items() if kind.startswith("PMC"))) == (297, 5)

    def test_leaks_are_the_known_ones(self, loaded):
        assert [len(loaded.facts["leaks"][stage]) for stage in STAGES] == [21, 31]
        assert loaded.facts["leaks"]["primary"][:4] == ["mac-1", "mac-18", "mac-20", "mac-39"]
        assert set(loaded.facts["leaks"]["primary"]) < set(loaded.facts["leaks"]["follow_up"])
