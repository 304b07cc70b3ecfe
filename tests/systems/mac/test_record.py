import json

import pytest
from dspy.utils.exceptions import LMServerError

from dspy_mama.core.patient_case import PatientCase
from dspy_mama.settings.panel import PanelSettings
from dspy_mama.systems.mac import (
    DiagnosisItem,
    diagnosis_record,
    failed_record,
    item_key,
    without_texts,
)
from dspy_mama.wiring.panel_methods import build_methods
from scripted import fields_of, scripted_lm, system_of, user_of
from systems.mac.panels import CONCLUSION, doctor, panel, role_of, script, speaks, supervisor

CASE = PatientCase(
    "c1",
    {"History": "Burning feet.", "Physical Examination": ""},
    {"Further Diagnostic Tests": "Low enzyme: Fabry disease."},
    "Fabry disease",
    "renal",
    "made-up",
    ("Physical Examination is empty",),
)
ANSWER = {"most_likely": "Fabry disease", "differentials": ["Gaucher", "FABRY"], "tests": ["enzyme"]}
KEYS = {
    "id", "key", "source", "repeat", "system", "case_id", "stage", "method", "case", "gold", "leak", "notices", "panel",
    "specialties", "turns", "attempts", "rounds", "consensus_round", "stopped", "final", "cuts", "outcomes", "usage",
    "usage_by_doctor", "models", "notes", "standing",
}  # fmt: skip


def replies(request):
    """Answers a panel and every baseline."""
    if role_of(request) != "other":
        return script(supervisor=supervisor(True))(request)
    whole = {**ANSWER, "reasoning": "feet", "critique": "shorter", "draft_score": 50}
    return {name: whole[name] for name in fields_of(request)}


def record(method="mac", stage="primary", lm=None, **settings):
    lm = lm or scripted_lm(replies)
    methods = build_methods(PanelSettings(doctors=2, methods=(method,), **settings), {"default": lm})
    item = DiagnosisItem(CASE, stage, method)
    return diagnosis_record(item, methods[method](case=CASE, stage=stage))


def test_a_panels_record_is_plain_data_and_complete():
    found = record()
    assert set(found) == KEYS
    assert json.loads(json.dumps(found)) == found
    assert (found["id"], found["system"], found["case_id"]) == ("c1/primary/mac", "diagnosis", "c1")
    assert found["gold"] == {"diagnosis": "Fabry disease", "group": "renal"}
    assert (found["leak"], record(stage="follow_up")["leak"]) == (False, True)
    assert (found["rounds"], found["consensus_round"], found["stopped"]) == (3, 3, "consensus")
    assert found["final"] == {
        "outcome": "scored",
        "error": None,
        "raw": None,
        "by": "supervisor",
        "most_likely": "Fabry disease",
        "possible": ["Gaucher disease"],
        "tests": ["enzyme"],
        "argument": None,
    }
    assert found["outcomes"] == {"diagnosis": "scored"}
    assert (found["usage"]["doctor"]["calls"], found["usage"]["supervisor"]["calls"]) == (2, 1)
    assert found["usage_by_doctor"]["Doctor 2"]["prompt_tokens"] == 100
    assert found["models"] == {"doctor": "scripted/a", "supervisor": "scripted/a"}
    assert found["panel"]["doctors"] == 2


def test_turns_say_who_said_what_and_how_they_got_the_floor():
    lm = scripted_lm(script(doctor=lambda r: doctor() if speaks(r) == "Doctor 1" else "prose", speaker="Nurse"))
    item = DiagnosisItem(CASE, "primary", "mac")
    whole = diagnosis_record(item, panel(2, lm=lm, rounds=5)(case=CASE))
    turns = whole["turns"]
    assert turns[1]["outcome"] == "parse"
    assert turns[1]["raw"] == "prose"
    assert turns[0]["raw"] is None
    assert (turns[0]["agrees"], turns[0]["consensus"], turns[2]["consensus"], turns[2]["accepted"]) == (
        False,
        None,
        False,
        False,
    )
    assert turns[3]["selection"] == {"by": "supervisor", "asked": "Doctor 1", "outcome": "scored", "usage": None}
    assert turns[4]["selection"]["by"] == "fallback"
    assert whole["notes"] == [
        "Doctor 2: 2 turn(s) not readable (parse)",
        "1 choice(s) of the next speaker were no use; the next in order spoke",
    ]
    assert turns[4]["selection"]["usage"]["calls"] == 2


@pytest.mark.parametrize(
    ("method", "by", "attempts", "usage"),
    [
        ("direct", "answer", 1, {"doctor": 1}),
        ("cot", "answer", 1, {"doctor": 1}),
        ("self_consistency", "vote", 10, {"doctor": 10}),
        ("self_refine", "refined", 1, {"doctor": 1, "critic": 1}),
    ],
)
def test_baselines_have_the_same_record_with_their_attempts(method, by, attempts, usage):
    found = record(method)
    assert set(found) == KEYS
    assert json.loads(json.dumps(found)) == found
    assert (found["method"], found["final"]["by"], len(found["attempts"])) == (method, by, attempts)
    assert (found["final"]["most_likely"], found["final"]["possible"]) == ("Fabry disease", ["Gaucher"])
    assert {role: used["calls"] for role, used in found["usage"].items()} == usage
    assert (found["turns"], found["panel"], found["stopped"], found["rounds"]) == ([], None, None, 0)
    assert sum(attempt["chosen"] for attempt in found["attempts"]) == 1
    assert (found["attempts"][0]["reasoning"] is not None) == (method in ("cot", "self_consistency"))


@pytest.mark.parametrize("method", ["direct", "cot", "self_consistency", "self_refine"])
def test_baselines_see_the_stage_and_are_asked_for_no_tests_in_the_follow_up(method):
    lm = scripted_lm(replies)
    found = record(method, "follow_up", lm)
    assert found["final"]["tests"] == []
    assert not any("tests" in fields_of(request) for request in lm.requests)
    assert all("Low enzyme" in user_of(request) for request in lm.requests)
    assert "does not count" in system_of(lm.requests[0])


def test_self_consistency_joins_spellings_of_a_disease():
    names = iter(["Gaucher", "Behçet's disease", "Behcet disease"])
    lm = scripted_lm(lambda request: {**ANSWER, "reasoning": "r", "most_likely": next(names)})
    methods = build_methods(
        PanelSettings(methods=("self_consistency",), baselines={"paths": 3}), {"default": lm, "doctor_1": lm}
    )
    assert methods["self_consistency"](case=CASE).most_likely == "Behçet's disease"


def test_a_baseline_that_cannot_be_read_is_unscored():
    found = record("direct", lm=scripted_lm(lambda request: "prose"))
    assert (found["outcomes"], found["final"]["most_likely"]) == ({"diagnosis": "parse"}, None)
    assert found["attempts"][0]["outcome"] == "parse"
    down = record("cot", lm=scripted_lm(lambda request: LMServerError("down")))
    assert down["outcomes"] == {"diagnosis": "infra"}


def test_keys_are_of_content_stage_method_and_repeat():
    other = PatientCase("c1", {"History": "Something else."})
    items = [DiagnosisItem(c, s, m) for c in (CASE, other) for s in ("primary", "follow_up") for m in ("mac", "cot")]
    assert len({item_key(item, repeat) for item in items for repeat in (0, 1)}) == 16
    assert item_key(items[0]) == item_key(DiagnosisItem(CASE, "primary", "mac"))


def test_a_failed_case_has_the_same_form_and_is_tried_again():
    failed = failed_record(DiagnosisItem(CASE, "primary", "mac"), RuntimeError("boom\nbang"))
    assert set(failed) == KEYS
    assert failed["outcomes"] == {"diagnosis": "infra"}
    assert failed["final"]["error"] == "RuntimeError: boom bang"


def test_without_texts_nothing_quotes_the_case():
    lm = scripted_lm(script(doctor=doctor(argument="SECRET"), supervisor=supervisor(True, disagreement="SECRET")))
    bare = without_texts(record(lm=lm))
    assert "SECRET" not in json.dumps(bare)
    assert "Burning" not in json.dumps(bare)
    assert bare["turns"][0]["most_likely"] == "Fabry disease"
    concluded = {"supervisor": supervisor(False), "concluder": {**CONCLUSION, "argument": "SECRET"}}
    kept = record(lm=scripted_lm(script(**concluded)))
    assert kept["final"]["argument"] == "SECRET"
    assert "SECRET" not in json.dumps(without_texts(kept))
    cot = without_texts(record("cot"))
    assert cot["attempts"][0]["reasoning"] is None


@pytest.mark.parametrize("method", ["direct", "self_refine"])
def test_a_single_model_sees_a_long_case_cut_as_the_panel_does(method):
    lm = scripted_lm(replies)
    settings = PanelSettings(doctors=2, methods=(method,), prompt_tokens=400)
    program = build_methods(settings, {"default": lm})[method]
    case = PatientCase("long", {"": "Burning feet. " * 300}, diagnosis="Fabry disease")
    found = diagnosis_record(DiagnosisItem(case, "primary", method), program(case=case))
    (cut,) = found["cuts"]
    assert (cut["role"], cut["limit"]) == ("doctor", 400)
    assert cut["case_characters"] > 2000
    assert "the end of the case was left out for length" in found["notes"]
    assert all(f"{cut['case_characters']} characters, left out" in user_of(request) for request in lm.requests)
    assert record(method)["cuts"] == []
