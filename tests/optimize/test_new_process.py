"""What a saved program predicts in a new process is what it predicted where it was made."""

import json
import subprocess
import sys
from pathlib import Path

import dspy
import pytest

from dspy_mama import UNDETERMINED, RiskAuditor
from dspy_mama.optimize import compile_program, save_program
from optimize.compile_parts import gold_pairs
from optimize.replay import from_hash, predict
from scripted import scripted_lm
from systems.audit.parts import MemoryRetriever

SCRIPT = Path(__file__).with_name("replay.py")


@pytest.fixture(scope="module")
def in_a_new_process(tmp_path_factory):
    """Predicts with saved programs in a process that made none of them."""
    errors = tmp_path_factory.mktemp("replay") / "errors.txt"
    with errors.open("w") as stream:
        child = subprocess.Popen(
            [sys.executable, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream, text=True
        )

        def ask(path):
            child.stdin.write(f"{path}\n")
            child.stdin.flush()
            line = child.stdout.readline()
            assert line, errors.read_text()
            return json.loads(line)

        yield ask
        child.stdin.close()
        child.wait()


def preset(**more):
    return RiskAuditor.from_preset(retriever=MemoryRetriever(), **more)


def with_instructions(program):
    for name, predictor in program.named_predictors():
        predictor.signature = predictor.signature.with_instructions(f"Ruleß for {name}:\n- “quoted”\n\n")
    return program


def with_demonstrations(program):
    judged = {"medical_risk": True, "ethical_risk": UNDETERMINED, "legal_risk": False, "risk": True}
    for number, (_, predictor) in enumerate(program.named_predictors()):
        texts = {name: f"demonstrated {name}" for name in predictor.signature.input_fields}
        rest = {
            name: f"理由 {name}"
            for name in predictor.signature.output_fields
            if not name.endswith(("risk", "citations"))
        }
        predictor.demos = [dspy.Example(**texts, **rest, **judged, citations=[1], augmented=True)]
        predictor.demos += [{**texts, **rest, "risk": False, "number": number}]
    return program


MADE = {
    "instructions": lambda: with_instructions(preset(system="baseline")),
    "demonstrations": lambda: with_demonstrations(preset(system="rag")),
    "thresholds": lambda: preset(system="rag", probability="stated", thresholds={"medical": 0.3, "legal": 0.85}),
    "ablated": lambda: with_demonstrations(with_instructions(preset(system="rag", ablation="ek"))),
    "other law, stated": lambda: preset(system="rag", jurisdiction="DE", probability="stated", order_seed=3),
}


@pytest.mark.parametrize("name", MADE)
def test_predictions_are_equal_in_a_new_process(name, tmp_path, in_a_new_process):
    program = MADE[name]()
    here = predict(program)
    assert in_a_new_process(save_program(program, tmp_path / "p.json")) == here


def test_the_comparison_would_notice_one_changed_word(tmp_path, in_a_new_process):
    program = with_instructions(preset(system="baseline"))
    here = predict(program)
    _, predictor = program.named_predictors()[0]
    predictor.signature = predictor.signature.with_instructions("Rules, changed.")
    for _, other in program.named_predictors():
        other.lm = None
    assert in_a_new_process(save_program(program, tmp_path / "p.json")) != here


def test_what_no_optimiser_changed_predicts_the_same_in_a_new_process(tmp_path, in_a_new_process):
    program = preset(system="baseline", ablation="ma_without_ma2", lms={"default": scripted_lm(from_hash)})
    result = compile_program(program, gold_pairs(12), "none", folder=tmp_path / "run")
    assert not result.kept
    here = predict(result.program)
    assert in_a_new_process(tmp_path / "run" / "program.json") == here
