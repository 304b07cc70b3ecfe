"""A consensus is held against what the doctors themselves said last."""

import pytest

from dspy_mama.core.patient_case import PatientCase
from dspy_mama.scoring.disease_match import synonym_table
from dspy_mama.scoring.standing import DIFFER, standing, standing_of
from dspy_mama.systems.mac import DiagnosisItem, diagnosis_record
from dspy_mama.systems.mac.grading_record import graded
from systems.mac.panels import CASE, CONCLUSION, doctor, panel, speaks, supervisor


def by_doctor(*names, agrees=False):
    """Doctor 1 names the first, Doctor 2 the second, and so on."""
    return lambda request: doctor(names[int(speaks(request)[-1]) - 1], agrees=agrees)


def team(*names, most_likely="Fabry disease", **settings):
    roles = {"doctor": by_doctor(*names), "supervisor": supervisor(True, most_likely=most_likely)}
    return panel(len(names), roles=roles, **settings)


def test_a_consensus_over_doctors_who_differ_is_kept_counted_and_warned_of():
    found = team("Fabry disease", "Lyme disease")(case=CASE)
    assert found.consensus
    end = found.diagnosis.standing
    assert (end.contradicted, end.differ, end.unheld) == (True, True, ())
    assert end.held == (("Doctor 1", "Fabry disease"), ("Doctor 2", "Lyme disease"))
    assert found.warnings == [f"{DIFFER} (Doctor 1: Fabry disease; Doctor 2: Lyme disease)"]


def test_a_supervisor_who_declares_what_no_doctor_holds_is_warned_of():
    found = team("Lyme disease", "lyme", most_likely="Pompe disease")(case=CASE)
    end = found.diagnosis.standing
    assert (end.contradicted, end.differ, end.unheld) == (True, False, ("supervisor",))
    assert found.warnings == ["the most likely diagnosis of the supervisor is held by no doctor"]


@pytest.mark.parametrize("names", [("Fabry disease", "Fabry's disease"), ("FABRY", "Fabry Disease (X-linked)")])
def test_spellings_of_one_disease_are_no_contradiction(names):
    found = team(*names)(case=CASE)
    assert (found.consensus, found.warnings, found.diagnosis.standing.contradicted) == (True, [], False)


def test_only_the_latest_diagnosis_that_could_be_read_counts():
    said = [doctor("Lyme disease"), doctor(), doctor(), doctor()]
    roles = {"doctor": said, "supervisor": [supervisor(), supervisor(True)]}
    changed = panel(2, roles=roles, speaker="round_robin")(case=CASE)
    assert (changed.rounds, changed.warnings) == (6, [])
    lost = [doctor("Lyme disease"), doctor(), doctor(), "prose", "prose", doctor()]
    three = panel(3, roles={**roles, "doctor": lost}, speaker="round_robin")(case=CASE)
    assert (three.consensus, three.rounds, three.diagnosis.discussion.turns[4].readable) == (True, 8, False)
    assert three.diagnosis.standing.held[0] == ("Doctor 1", "Lyme disease")


def test_without_a_supervisor_the_doctors_flags_are_held_against_their_diagnoses():
    roles = {"doctor": by_doctor("Fabry disease", "Lyme disease", agrees=True)}
    alone = panel(2, roles=roles, supervisor=False, speaker="round_robin")(case=CASE)
    assert alone.consensus
    assert alone.diagnosis.standing.differ
    assert alone.warnings[0].startswith(DIFFER)
    same = panel(2, roles={"doctor": doctor("Lyme disease", agrees=True)}, supervisor=False)(case=CASE)
    assert same.diagnosis.standing.unheld == ("concluder",)
    assert same.diagnosis.standing.contradicted


def test_doctors_who_differ_without_a_consensus_are_no_contradiction_but_an_outcome_of_nobodys_is_told():
    roles = {"doctor": by_doctor("Gout", "Lyme disease"), "concluder": CONCLUSION}
    found = panel(2, roles=roles, rounds=3)(case=CASE)
    end = found.diagnosis.standing
    assert (end.consensus, end.contradicted, end.differ, end.unheld) == (False, False, True, ("concluder",))
    assert found.warnings == ["the most likely diagnosis of the concluder is held by no doctor"]


def test_the_concluder_is_held_against_the_doctors_too_where_it_is_always_asked():
    roles = {"supervisor": supervisor(True), "concluder": {**CONCLUSION, "most_likely": "Gout"}}
    found = panel(2, roles=roles, conclude="always")(case=CASE)
    assert found.diagnosis.standing.unheld == ("concluder",)
    unread = panel(2, roles={**roles, "concluder": "prose"}, conclude="always")(case=CASE)
    assert unread.diagnosis.standing.unheld == ()


def test_nobody_contradicts_nobody():
    end = standing({}, {}, consensus=False)
    assert (end.differ, end.contradicted, end.warnings) == (False, False, ())
    assert panel(2, roles={"doctor": "prose"})(case=CASE).diagnosis.standing.held == ()


async def test_the_record_keeps_it_an_older_one_gets_it_and_a_dictionary_counts():
    names = ("Fabry disease", "Anderson-Fabry")
    case = PatientCase("c", {"": CASE}, diagnosis="Fabry disease")
    record = diagnosis_record(DiagnosisItem(case, "primary", "mac"), await team(*names).acall(case=case))
    assert record["standing"]["contradicted"] is True
    assert record["standing"]["held"] == dict(zip(("Doctor 1", "Doctor 2"), names, strict=True))
    older = {name: value for name, value in record.items() if name != "standing"}
    assert standing_of(older) == record["standing"]
    known = await graded(older, None, synonym_table([names]))
    assert known["standing"]["contradicted"] is False
    assert (await graded(older, None, {}))["standing"]["contradicted"] is True
