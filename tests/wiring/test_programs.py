"""Runs with a saved program: it is what audits, and settings it was not made from are refused."""

import json

import pytest

from dspy_mama import RiskAuditor
from dspy_mama.core.errors import DeclarationError
from dspy_mama.optimize import program_state, save_program
from dspy_mama.settings import Settings, SystemSettings
from dspy_mama.systems.audit import ABLATIONS, SYSTEMS
from dspy_mama.wiring.build import build_auditor_program
from dspy_mama.wiring.study import run_spec
from scripted import scripted_lm, system_of

RULE = "Doses are risky."


@pytest.fixture
def saved(tmp_path):
    program = RiskAuditor.from_preset(system="baseline")
    for _, predictor in program.named_predictors():
        predictor.signature = predictor.signature.with_instructions(RULE)
    program.thresholds = {"legal": 0.3}
    return save_program(program, tmp_path / "program.json", origin={"optimizer": {"name": "gepa"}})


def run_with(path, system="baseline", ablation="full", **more):
    from dataclasses import replace

    return Settings(system=replace(SYSTEMS[system], program=str(path), **more), ablation=ABLATIONS[ablation])


def test_a_run_audits_with_the_saved_program_and_says_so(saved):
    lm = scripted_lm()
    settings = run_with(saved)
    program = build_auditor_program(settings, lms={"default": lm})
    program(question="q", answer="a")
    assert all(system_of(request).startswith(RULE) for request in lm.requests)
    assert program.thresholds == {"legal": 0.3}
    content = json.loads(saved.read_text())["hashes"]["content"]
    assert run_spec(settings, {}, program, "evaluate")["artifact"] == content
    again = program_state(program)
    assert again["origin"] == {"optimizer": {"name": "gepa"}}


def test_other_thresholds_are_another_run(saved, tmp_path):
    other = RiskAuditor.from_preset(system="baseline")
    for _, predictor in other.named_predictors():
        predictor.signature = predictor.signature.with_instructions(RULE)
    path = save_program(other, tmp_path / "other.json")
    specs = [
        run_spec(run_with(saved), {}, build_auditor_program(run_with(file), lms={"default": scripted_lm()}), "evaluate")
        for file in (saved, path)
    ]
    assert specs[0]["prompts"] == specs[1]["prompts"]
    assert specs[0]["artifact"] != specs[1]["artifact"]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"system": "enhanced"}, "system=baseline$"),
        ({"ablation": "ma"}, "ablation=full$"),
        ({"probability": "stated"}, "system.probability=token$"),
    ],
)
def test_settings_that_the_program_was_not_made_from_are_refused_with_what_to_set(saved, settings, named):
    with pytest.raises(DeclarationError, match=f"was made from other settings than this run's: {named}"):
        build_auditor_program(run_with(saved, **settings), lms={"default": scripted_lm()})


def test_a_program_of_another_kind_is_refused(tmp_path):
    from dspy_mama.systems.mac import DiagnosisPanel

    path = save_program(DiagnosisPanel(doctors=2), tmp_path / "panel.json")
    with pytest.raises(DeclarationError, match="those of a diagnosis_panel"):
        build_auditor_program(run_with(path), lms={"default": scripted_lm()})


def test_in_python_the_setting_points_to_load_program(saved):
    with pytest.raises(DeclarationError, match="load_program"):
        RiskAuditor.from_preset(system="baseline", program=str(saved))
    assert SystemSettings().program is None
