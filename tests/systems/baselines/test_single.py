from typing import Literal

import dspy
import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Scored
from dspy_mama.lm.predict import reading_of
from dspy_mama.lm.schema import field_specs
from dspy_mama.systems.audit import RiskAuditor
from dspy_mama.systems.audit.signatures import AssessInitialRisk
from dspy_mama.systems.baselines import ChainOfThought, Direct, SelfConsistency, SelfRefine, result_of
from dspy_mama.systems.refine.signatures import JudgeSafety, PassGate, PlanRevision, RefineReply, WriteReply
from scripted import fields_of, scripted_lm, system_of


class Diagnose(dspy.Signature):
    """Name the disease."""

    case: str = dspy.InputField(desc="the case")
    disease: str = dspy.OutputField(desc="its name", max_length=60)
    tests: list[str] = dspy.OutputField(desc="what to do", max_length=3)
    urgency: Literal["low", "high"] = dspy.OutputField(desc="how urgent")


ANSWER = {"disease": "Fabry disease", "tests": ["enzyme"], "urgency": "high"}


def test_direct_asks_once_for_the_signatures_fields():
    lm = scripted_lm(lambda request: ANSWER)
    answer = Direct(Diagnose, lm=lm)(case="pain")
    assert (answer.disease, answer.tests, answer.urgency) == ("Fabry disease", ["enzyme"], "high")
    assert [fields_of(request) for request in lm.requests] == [["disease", "tests", "urgency"]]
    assert result_of(answer).by == "answer"
    assert reading_of(answer).usage.calls == result_of(answer).usage["solver"].calls == 1


def test_chain_of_thought_writes_its_reasoning_first():
    lm = scripted_lm(lambda request: {"reasoning": "burning feet", **ANSWER})
    answer = ChainOfThought(Diagnose, lm=lm, temperature=0.3)(case="pain")
    assert fields_of(lm.requests[0])[0] == "reasoning"
    assert lm.requests[0].config.temperature == 0.3
    assert (answer.reasoning, answer.disease) == ("burning feet", "Fabry disease")


async def test_what_cannot_be_read_is_named_and_never_made_up():
    lm = scripted_lm(lambda request: {"disease": "Fabry", "tests": "none", "urgency": "perhaps"})
    answer = await Direct(Diagnose, lm=lm).acall(case="pain")
    assert (answer.disease, answer.tests, answer.urgency) == ("Fabry", [], None)
    assert reading_of(answer).outcomes["urgency"].kind == "parse"
    assert len(lm.requests) == 2


@pytest.mark.parametrize("make", [Direct, ChainOfThought, SelfConsistency, SelfRefine])
def test_any_signature_will_do_also_a_string_and_the_audits(make):
    lm = scripted_lm(lambda request: {name: _value(name) for name in fields_of(request)})
    assert make("question -> verdict: bool", lm=lm)(question="q").verdict is True
    answer = make(AssessInitialRisk, lm=lm)(question="q", answer="a")
    assert (answer.medical_risk, answer.legal_risk) == (True, True)
    assert "You audit what a medical chatbot answered" in system_of(lm.requests[-1])


@pytest.mark.parametrize("make", [Direct, ChainOfThought, SelfConsistency, SelfRefine])
@pytest.mark.parametrize("signature", [JudgeSafety, PassGate, PlanRevision, RefineReply, WriteReply])
def test_the_loops_signatures_will_do_as_well(make, signature):
    kinds = {"bool": True, "text": "t", "texts": ["t"], "probability": {"noul": 0.5}}
    values = {spec.name: spec.options[0] if spec.options else kinds[spec.kind] for spec in field_specs(signature)}
    values |= {"reasoning": "r", "critique": "c", "draft_score": 50}
    lm = scripted_lm(lambda request: {name: values[name] for name in fields_of(request)})
    answer = make(signature, lm=lm)(**dict.fromkeys(signature.input_fields, "x"))
    assert all(isinstance(outcome, Scored) for outcome in reading_of(answer).outcomes.values())


def _value(name):
    return 50 if name == "draft_score" else True if name.endswith(("risk", "verdict")) else f"text of {name}"


@pytest.mark.parametrize("make", [Direct, ChainOfThought, SelfConsistency, SelfRefine])
def test_lms_are_bound_by_role_and_survive_saving(make, tmp_path):
    lm = scripted_lm(lambda request: {**ANSWER, "reasoning": "r", "critique": "c", "draft_score": 50})
    program = make(Diagnose, role="doctor").set_lms({"doctor": lm})
    with pytest.raises(DeclarationError, match="unknown role"):
        program.set_lms({"judge": lm})
    with pytest.raises(DeclarationError, match="not an LM"):
        program.set_lms({"doctor": "openai/gpt-4o"})
    trained = make(Diagnose, role="doctor")
    trained.answer.signature = trained.answer.signature.with_instructions("Better instructions.")
    trained.save(tmp_path / "p.json")
    other = make(Diagnose, role="doctor")
    other.load(tmp_path / "p.json")
    other.set_lms({"default": lm})
    other(case="pain")
    assert any("Better instructions." in system_of(request) for request in lm.requests)


@pytest.mark.parametrize("make", [Direct, ChainOfThought, SelfConsistency, SelfRefine])
def test_without_an_lm_the_message_says_what_to_do(make):
    with pytest.raises(DeclarationError, match=r"dspy\.configure"):
        make(Diagnose)(case="pain")


@pytest.mark.parametrize("make", [Direct, ChainOfThought, SelfConsistency, SelfRefine])
def test_the_audit_takes_a_baseline_in_its_predictors_place(make):
    auditor = RiskAuditor.from_preset("baseline", "ma")
    auditor.initial.assess = make(auditor.initial.assess.signature, role="assessor")
    lm = scripted_lm(lambda request: {name: _value(name) for name in fields_of(request)})
    audit = auditor.set_lms({"default": lm})(question="Can I take twice the dose?", answer="Yes.")
    assert audit.phases["initial"].medical.risk is True
    assert audit.medical_verdict == "risky"
    counted = audit.routing.usage.calls + sum(phase.usage.calls for phase in audit.phases.values())
    assert counted == len(lm.requests)
