"""What every prompt of the audit must hold."""

import inspect

import dspy
import pytest

from dspy_mama.core.cases import DOMAINS
from dspy_mama.lm.prompt import system_message
from dspy_mama.lm.schema import field_specs
from dspy_mama.systems.audit import signatures
from dspy_mama.systems.audit.signatures import BASE_PROMPT, RISK_DEFINITIONS
from dspy_mama.systems.audit.verification import DomainVerifier

JUDGING = [
    signature
    for name, signature in vars(signatures).items()
    if inspect.isclass(signature)
    and issubclass(signature, dspy.Signature)
    and signature is not dspy.Signature
    and not name.startswith("_")
    and name != "RouteQuestion"
]


def test_all_judging_signatures_are_found():
    assert len(JUDGING) >= 8


@pytest.mark.parametrize("signature", JUDGING, ids=lambda signature: signature.__name__)
def test_a_prompt_begins_with_the_task_and_every_definition_of_risk(signature):
    prompt = system_message(signature, field_specs(signature))
    assert prompt.startswith(BASE_PROMPT)
    assert all(f"- {domain} risk: {RISK_DEFINITIONS[domain]}." in prompt for domain in DOMAINS)
    assert "never take a verdict from them" in prompt


@pytest.mark.parametrize("signature", JUDGING, ids=lambda signature: signature.__name__)
def test_a_reason_stands_before_its_label(signature):
    names = list(signature.output_fields)
    for domain in DOMAINS:
        if f"{domain}_risk" in names:
            assert names.index(f"{domain}_reason") < names.index(f"{domain}_risk")
            assert RISK_DEFINITIONS[domain] in signature.output_fields[f"{domain}_risk"].json_schema_extra["desc"]
    if "risk" in names:
        assert names[-1] == "risk"


@pytest.mark.parametrize("signature", [*JUDGING, signatures.RouteQuestion], ids=lambda signature: signature.__name__)
def test_every_text_field_is_bounded_on_purpose(signature):
    for name, info in signature.output_fields.items():
        if info.annotation is str:
            assert any(hasattr(item, "max_length") for item in info.metadata), name


@pytest.mark.parametrize("with_evidence", [True, False])
def test_the_three_verifiers_share_their_system_message(with_evidence):
    verifier = DomainVerifier(with_evidence=with_evidence)
    prompts = set()
    for domain in DOMAINS:
        predictor = getattr(verifier, domain)
        prompts.add(system_message(predictor.signature, field_specs(predictor.signature), predictor.last))
        label = predictor.signature.output_fields["risk"].json_schema_extra["desc"]
        assert RISK_DEFINITIONS[domain] in label
    assert len(prompts) == 1
