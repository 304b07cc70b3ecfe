"""What a saved program predicts in a new process is what it predicted where it was made."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import dspy
import pytest

from dspy_mama import UNDETERMINED, RiskAuditor
from dspy_mama.optimize import compile_program, save_program
from dspy_mama.optimize.diff import show_artifact
from dspy_mama.settings import OptimizerSettings
from dspy_mama.settings.optimize import OptimizerName
from optimize.replay import from_hash, predict
from optimize.test_estimate_compile import pairs as compile_pairs
from optimize.test_estimate_plans import write
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


@pytest.mark.parametrize("name", get_args(OptimizerName))
def test_what_every_optimiser_made_predicts_the_same_in_a_new_process(name, tmp_path, in_a_new_process):
    if "mipro" in name:
        pytest.importorskip("optuna")
    more = {"probability": "stated"} if name == "reanchor" else {}
    lm = scripted_lm(from_hash, max_tokens=400)
    program = preset(system="baseline", ablation="ma_without_ma2", lms={"default": lm}, **more)
    rounds = 6 if "gepa" in name else 2
    sizes = {"demos": 2, "candidates": 2, "trials": 3, "minibatch": 4, "rounds": rounds, "threads": 1}
    settings = OptimizerSettings(name=name, keep="always", **sizes)
    writer = scripted_lm(write, name="scripted/writer", max_tokens=1000)
    gold = [pair for split in compile_pairs().values() for pair in split]
    result = compile_program(
        program, gold, settings, splits=compile_pairs(), reflection_lm=writer, folder=tmp_path / "run"
    )
    if name not in ("none", "token_thresholds", "reanchor"):
        assert result.kept, result.reason
        _, shown = show_artifact(tmp_path / "run")
        assert shown["diff"]["changed"]
    here = predict(result.program)
    assert in_a_new_process(tmp_path / "run" / "program.json") == here
