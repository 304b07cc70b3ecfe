"""Saved programs: what was saved comes back, and what was damaged since is refused by name."""

import json

import pytest

from dspy_mama import RiskAuditor, load_program
from dspy_mama.core.errors import DeclarationError
from dspy_mama.optimize import save_program
from scripted import scripted_lm


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    program = RiskAuditor.from_preset(system="baseline", thresholds={"legal": 0.25})
    return save_program(program, tmp_path_factory.mktemp("programs") / "program.json")


def changed(saved, tmp_path, change):
    document = json.loads(saved.read_text(encoding="utf-8"))
    change(document, next(name for name in document["state"] if name != "metadata"))
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_saved_program_comes_back_with_its_thresholds_and_audits(saved):
    program = load_program(saved, lms={"default": scripted_lm()})
    assert program.thresholds == {"legal": 0.25}
    assert program(question="q", answer="a").medical_verdict == "risky"


@pytest.mark.parametrize("value", [float("nan"), 5, -0.1, True, "0.5", None])
def test_a_threshold_that_would_make_every_label_safe_is_refused(saved, tmp_path, value):
    path = changed(saved, tmp_path, lambda document, _: document.update(thresholds={"medical": value}))
    with pytest.raises(DeclarationError, match="thresholds must lie in"):
        load_program(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda part: part.update(signature=None),
        lambda part: part.pop("signature"),
        lambda part: part["signature"].update(fields=3),
        lambda part: part.update(demos=3),
        lambda part: part.update(demos=["text"]),
    ],
)
def test_a_damaged_predictor_is_named(saved, tmp_path, damage):
    path = changed(saved, tmp_path, lambda document, name: damage(document["state"][name]))
    with pytest.raises(DeclarationError, match="is damaged"):
        load_program(path)


def test_another_ablation_under_the_same_state_is_refused(saved, tmp_path):
    path = changed(saved, tmp_path, lambda document, _: document["ablation"].update(consensus=False))
    with pytest.raises(DeclarationError, match="only into the same ablation"):
        load_program(path)


def test_a_name_in_place_of_an_lm_is_refused_with_what_to_write():
    with pytest.raises(DeclarationError, match=r"give dspy\.LM\('openai/gpt-4o'\)"):
        RiskAuditor.from_preset(system="baseline", lms={"judge": "openai/gpt-4o"})
