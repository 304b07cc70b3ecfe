import json

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Scored
from dspy_mama.datasets.diseases import disease_named
from dspy_mama.systems.baselines import SelfRefine
from dspy_mama.systems.mac import (
    DIMENSIONS,
    DiagnosisItem,
    DiseaseExpert,
    KnowledgePanel,
    answers_without_texts,
    knowledge_record,
)
from dspy_mama.systems.mac.grading import Grader
from dspy_mama.systems.mac.grading_record import graded, ungraded
from scripted import fields_of, scripted_lm, system_of, text_of

ITEM = DiagnosisItem(disease_named("Fabry disease"), "knowledge", "direct")


def shown(request):
    return " ".join(text_of(message) for message in request.messages)


def reply(request):
    """Prose in place of an entry on the prognosis; a supervisor who counts what it was shown."""
    if "You supervise doctors" in system_of(request):
        return {"disagreement": "the age", "entry": f"{shown(request).count('Doctor ')} entries"}
    return "prose" if "prognosis: " in shown(request) else {"entry": "text"}


def test_knowledge_is_asked_one_dimension_at_a_time():
    lm = scripted_lm(reply)
    answer = DiseaseExpert(lms={"default": lm})(disease=" Fabry disease ")
    found = knowledge_record(ITEM, answer)
    assert list(found["answers"]) == list(DIMENSIONS)
    assert answer.answers["definition"] == Scored("text")
    assert found["answers"]["definition"]["text"] == "text"
    assert found["answers"]["prognosis"]["outcome"] == "parse"
    assert found["outcomes"]["prognosis_entry"] == "parse"
    assert found["usage"]["doctor"]["calls"] == len(lm.requests) == len(DIMENSIONS) + 1
    assert (found["stage"], found["leak"], found["gold"]["diagnosis"]) == ("knowledge", False, "Fabry disease")
    assert json.loads(json.dumps(found)) == found
    with pytest.raises(DeclarationError, match="disease"):
        DiseaseExpert(lms={"default": lm})(disease=" ")


def test_a_panel_states_knowledge_by_doctors_and_a_supervisor():
    lm, own = scripted_lm(reply), scripted_lm(reply, name="scripted/own")
    team = KnowledgePanel(3, lms={"default": lm, "doctor_2": own, "grader": lm})
    answer = team(disease="Fabry disease")
    found = knowledge_record(ITEM, answer)
    side = found["answers"]["definition"]
    assert (side["text"], side["by"], side["disagreement"]) == ("3 entries", "supervisor", "the age")
    assert [draft["by"] for draft in side["drafts"]] == ["Doctor 1", "Doctor 2", "Doctor 3"]
    assert side["usage"]["calls"] == 4
    lost = found["answers"]["prognosis"]
    assert (lost["outcome"], lost["by"], len(lost["drafts"])) == ("parse", None, 3)
    calls = {role: used["calls"] for role, used in found["usage"].items()}
    assert calls == {"doctor": 3 * (len(DIMENSIONS) + 1), "supervisor": len(DIMENSIONS) - 1}
    assert sum(calls.values()) == len(lm.requests) + len(own.requests)
    assert sum(used["calls"] for used in found["usage_by_doctor"].values()) == calls["doctor"]
    assert found["models"]["doctor_2"] != found["models"]["doctor_1"]
    assert found["notes"] == ["prognosis: 3 doctor(s) could not be read"]
    with pytest.raises(DeclarationError, match="2 to 5"):
        KnowledgePanel(1)


def test_without_a_supervisor_the_concluder_makes_one_entry_of_them():
    lm, concluder = scripted_lm(reply), scripted_lm(reply, name="scripted/concluder")
    answer = KnowledgePanel(2, supervisor=False, lms={"default": lm, "concluder": concluder})(disease="Fabry disease")
    assert answer.entries["definition"].by == "concluder"
    assert len(concluder.requests) == len(DIMENSIONS) - 1
    assert set(answer.usage) == {"doctor", "concluder"}


def test_a_single_model_may_refine_its_entries():
    def refining(request):
        return {name: {"draft_score": 40}.get(name, f"text of {name}") for name in fields_of(request)}

    expert = DiseaseExpert(
        lambda s: SelfRefine(s, rounds=1, role="doctor"), method="self_refine", lms={"default": scripted_lm(refining)}
    )
    answer = expert(disease="Fabry disease")
    side = knowledge_record(ITEM, answer)["answers"]["management"]
    assert [(draft["by"], draft["score"], draft["kept"]) for draft in side["drafts"]] == [
        ("candidate 1", 40, True),
        ("candidate 2", 40, True),
    ]
    assert side["by"] == "refined"
    assert {role: used.calls for role, used in answer.usage.items()} == {"doctor": 12, "critic": 12}


async def test_entries_are_graded_on_their_scale_again_alike_and_lost_ones_not_at_all():
    judge = scripted_lm(lambda request: {"reason": "why", "score": 4})
    bare = knowledge_record(ITEM, DiseaseExpert(lms={"default": scripted_lm(reply)})(disease="Fabry disease"))
    found = await graded(bare, Grader(lms={"grader": judge}), {})
    assert set(found["grades"]) == set(DIMENSIONS) - {"prognosis"}
    assert found["grades"]["aetiology"]["score"] == 4
    assert found["outcomes"]["aetiology"] == "scored"
    assert found["usage"]["grader"]["calls"] == len(judge.requests) == 5
    assert ungraded(found) == bare
    assert await graded(found, None, {}) == bare


def test_without_texts_no_entry_is_kept_but_whether_it_could_be_read():
    def secret(request):
        return dict.fromkeys(fields_of(request), "SECRET")

    answer = KnowledgePanel(2, lms={"default": scripted_lm(secret)})(disease="Fabry disease")
    whole = knowledge_record(ITEM, answer)
    assert "SECRET" in json.dumps(whole)
    bare = answers_without_texts(whole)
    assert "SECRET" not in json.dumps(bare)
    assert bare["answers"]["definition"]["outcome"] == "scored"
