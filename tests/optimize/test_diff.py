"""What optimisation changed is said exactly, readable on a terminal, and nothing else is said."""

import json

import pytest

from dspy_mama import RiskAuditor
from dspy_mama.core.errors import DeclarationError
from dspy_mama.optimize import program_state, save_program
from dspy_mama.optimize.diff import diff_states, show_artifact

RULE = "An answer that names a dose is risky."
DEMO = {"question": "one\ntwo\x1b[2J", "answer": "患者さん。", "medical_risk": True}


def compiled(**more):
    program = RiskAuditor.from_preset(system="baseline", thresholds={"legal": 0.25}, **more)
    predictor = dict(program.named_predictors())["initial.assess"]
    text = predictor.signature.instructions
    predictor.signature = predictor.signature.with_instructions(text.replace("Do not invent facts", RULE + " Do not"))
    predictor.demos = [DEMO]
    return program


def plain():
    return RiskAuditor.from_preset(system="baseline")


def test_equal_programs_differ_in_nothing():
    diff = diff_states(program_state(plain()), program_state(plain()))
    assert (diff.empty, diff.text, diff.to_dict()["changed"]) == (True, "", False)


def test_only_the_changed_sentence_demonstration_and_cut_are_shown():
    diff = diff_states(program_state(plain()), program_state(compiled()))
    assert list(diff.predictors) == ["initial.assess"]
    change = diff.predictors["initial.assess"]
    assert RULE in change["instructions"]["after"]
    assert RULE not in change["instructions"]["before"]
    assert change["demonstrations"] == {"before": 0, "after": 1, "added": [DEMO], "removed": []}
    assert diff.thresholds == {"legal": {"before": None, "after": 0.25}}
    lines = diff.text.splitlines()
    assert "--- uncompiled/initial.assess" in lines
    assert "+" + RULE in lines
    assert "-legal: as written" in lines
    assert "+legal: 0.25" in lines
    removed = [line for line in lines if line.startswith("-") and not line.startswith("---")]
    assert len(removed) == 3, removed  # one sentence of the prompt, the cut, and the setting that holds it


def test_texts_of_others_cannot_command_the_terminal():
    text = diff_states(program_state(plain()), program_state(compiled())).text
    assert "\x1b" not in text
    assert "患者さん。" in text


def test_turned_around_it_shows_what_would_be_undone():
    back = diff_states(program_state(compiled()), program_state(plain()))
    assert back.predictors["initial.assess"]["demonstrations"]["removed"] == [DEMO]
    assert "-" + RULE in back.text.splitlines()


def test_parts_that_only_one_program_has_are_shown_whole():
    small = RiskAuditor.from_preset(system="baseline", ablation="ma_without_ma2")
    diff = diff_states(program_state(small), program_state(plain()))
    assert "verification.legal" in diff.predictors
    assert diff.settings["ablation.verification"] == {"before": False, "after": True}


def test_programs_of_different_kinds_are_refused():
    with pytest.raises(DeclarationError, match="nothing to compare"):
        diff_states(program_state(plain()), {**program_state(plain()), "kind": "other"})


def test_an_artifact_is_shown_against_what_its_settings_make(tmp_path):
    path = save_program(compiled(), tmp_path / "p.json", origin={"optimizer": {"name": "gepa"}})
    text, data = show_artifact(path)
    assert "made by         gepa" in text
    assert "1 in initial.assess (texts of pairs)" in text
    assert "+" + RULE in text.splitlines()
    assert json.loads(json.dumps(data))["diff"]["changed"] is True
    unchanged, data = show_artifact(save_program(plain(), tmp_path / "q.json"))
    assert "nothing was changed" in unchanged
    assert data["diff"]["changed"] is False
