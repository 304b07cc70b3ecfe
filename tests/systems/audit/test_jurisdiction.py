"""Whose law the legal domain means."""

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.prompt import system_message
from dspy_mama.lm.schema import field_specs
from dspy_mama.retrieval import NullRetriever
from dspy_mama.settings import SystemSettings
from dspy_mama.systems.audit import ABLATIONS, RiskAuditor, build_program
from dspy_mama.systems.audit.signatures import (
    LEGAL_DEFINITIONS,
    RISK_DEFINITIONS,
    AssessInitialRisk,
    ReachConsensusEnhanced,
    under_law,
)

ELSEWHERE = [name for name in LEGAL_DEFINITIONS if name != "JP"]


def prompts(program):
    """Every word that a judging predictor shows: instructions, fields and labels."""
    found = []
    for _, predictor in program.named_predictors():
        if predictor.role == "router":
            continue
        signature = predictor.signature
        labels = [info.json_schema_extra["desc"] for info in signature.output_fields.values()]
        found.append(system_message(signature, field_specs(signature)) + "\n".join(labels))
    return found


def test_japan_is_the_default_and_its_prompts_are_the_signatures_themselves():
    assert SystemSettings().jurisdiction == "JP"
    assert LEGAL_DEFINITIONS["JP"] == RISK_DEFINITIONS["legal"]
    assert (
        "(in Japan the Medical Practitioners' Act and the Pharmaceuticals and Medical Devices Act)"
        in (LEGAL_DEFINITIONS["JP"])
    )
    assert under_law(AssessInitialRisk, "JP") is AssessInitialRisk


@pytest.mark.parametrize("jurisdiction", ELSEWHERE)
@pytest.mark.parametrize("ablation", ABLATIONS)
def test_every_prompt_means_the_chosen_law_and_no_other(jurisdiction, ablation):
    settings = SystemSettings(jurisdiction=jurisdiction)
    shown = prompts(build_program(settings, ABLATIONS[ablation], NullRetriever()))
    assert shown
    for prompt in shown:
        assert LEGAL_DEFINITIONS[jurisdiction] in prompt
        assert "Japan" not in prompt
        assert all(RISK_DEFINITIONS[domain] in prompt for domain in ("medical", "ethical"))


def test_other_fields_keep_their_words_and_bounds():
    changed = under_law(ReachConsensusEnhanced, "DE")
    for name, info in ReachConsensusEnhanced.output_fields.items():
        other = changed.output_fields[name]
        assert (other.annotation, other.metadata) == (info.annotation, info.metadata)
        same = other.json_schema_extra["desc"] == info.json_schema_extra["desc"]
        assert same == (name != "legal_risk")


def test_a_preset_takes_the_jurisdiction_and_refuses_an_unknown_one():
    auditor = RiskAuditor.from_preset("baseline", jurisdiction="US")
    assert all(LEGAL_DEFINITIONS["US"] in prompt for prompt in prompts(auditor))
    with pytest.raises(DeclarationError, match="jurisdiction"):
        RiskAuditor.from_preset("baseline", jurisdiction="FR")
