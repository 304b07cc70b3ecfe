"""Every optimiser, with an LM that it can help, and with one that nothing can help."""

import json
import os
import subprocess
import sys
from pathlib import Path

import dspy
import pytest

from dspy_mama.core import DeclarationError
from dspy_mama.optimize import compile_program
from optimize import replay
from optimize.compile_parts import (
    RULE,
    WaveringAtHeat,
    auditor,
    from_demos,
    gold_pairs,
    proposes,
    rule_bound,
    scripted,
    shifted_stated,
    shifted_tokens,
    useless,
)
from scripted import fields_of

QUICK = {"threads": 2, "demos": 2, "candidates": 2, "trials": 3, "minibatch": 6, "rounds": 2}


def undecided(request):
    return {name: {"noul": 0.5} if name.endswith("risk") else "x" for name in fields_of(request)}


HELPED = {
    "labelled": (from_demos, {}),
    "bootstrap": (from_demos, {}),
    "mipro": (rule_bound, {"trials": 10}),
    "gepa": (rule_bound, {}),
    "simba": (WaveringAtHeat, {}),
    "reanchor": (shifted_stated, {}),
    "token_thresholds": (shifted_tokens, {}),
    "staged_bootstrap": (from_demos, {}),
    "staged_gepa": (rule_bound, {}),
    "staged_mipro": (rule_bound, {"trials": 10}),
}


def compiled(name, script, pairs=None, **options):
    lm = scripted(script() if isinstance(script, type) else script)
    program = auditor(lm, probability="stated" if script in (shifted_stated, undecided) else "token")
    options = {**QUICK, "target": "joint_accuracy", **options}
    return lm, program, compile_program(program, pairs or gold_pairs(), name, **options)


@pytest.fixture(scope="module")
def helped(tmp_path_factory):
    """Compiles with an optimiser once, into a folder; both are kept for the next test that asks."""
    done = {}

    def result_of(name):
        if name not in done:
            script, options = HELPED[name]
            folder = tmp_path_factory.mktemp(name)
            done[name] = compiled(name, script, folder=folder, **options)[2], folder
        return done[name]

    return result_of


@pytest.mark.parametrize("name", HELPED)
def test_an_lm_that_can_be_helped_is_helped_on_held_out_pairs(name, helped):
    result, _ = helped(name)
    assert result.kept, result.reason
    before, after = (side.value("joint_accuracy") for side in (result.test.before, result.test.after))
    assert before < 0.7
    assert after > 0.9
    assert result.test.finding == "higher"


def test_what_any_optimiser_made_predicts_the_same_in_a_new_process(helped):
    files = {name: str(helped(name)[1] / "program.json") for name in HELPED}
    here = {name: replay.predict(helped(name)[0].program.deepcopy()) for name in HELPED}
    code = (
        "import json, sys; from dspy_mama import load_program; from optimize import replay; "
        "print(json.dumps({n: replay.predict(load_program(f)) for n, f in json.loads(sys.argv[1]).items()}))"
    )
    tests = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", code, json.dumps(files)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == here


def test_gepa_raises_joint_accuracy_from_under_a_half_with_the_experts_rule():
    _, _, result = compiled("gepa", rule_bound)
    assert result.test.before.value("joint_accuracy") < 0.5 < 0.9 < result.test.after.value("joint_accuracy")
    instructions = [p.signature.instructions for _, p in result.program.named_predictors()]
    assert any(RULE in text for text in instructions)
    assert any("{possible_diagnoses}" in text for text in instructions)


@pytest.mark.parametrize("name", HELPED)
def test_with_a_useless_lm_nothing_is_kept_and_the_program_is_as_it_was(name):
    _, program, result = compiled(name, undecided if name == "reanchor" else useless)
    assert not result.kept
    assert result.test.finding == "not distinguishable"
    for (_, own), (_, given) in zip(result.program.named_predictors(), program.named_predictors(), strict=True):
        assert own.signature.instructions == given.signature.instructions
        assert own.demos == given.demos == []
        assert own.lm is given.lm
    assert result.program.thresholds == {}


def test_keep_always_keeps_what_is_no_better():
    _, _, result = compiled("labelled", useless, keep="always")
    assert result.kept
    assert "kept as asked" in result.reason
    assert any(predictor.demos for _, predictor in result.program.named_predictors())


@pytest.mark.parametrize("script", [shifted_tokens, shifted_stated])
def test_the_threshold_fit_finds_the_cut_between_shifted_probabilities(script):
    lm, _, result = compiled("token_thresholds", script)
    for cut in result.program.thresholds.values():
        assert 0.30 < cut < 0.45
    assert set(result.program.thresholds) == {"medical", "ethical", "legal"}
    # One run a pair: the sweep itself and the cut program's own measuring ask nothing more.
    assert len(lm.requests) == 2 * len(gold_pairs())


def test_demonstrations_hold_their_own_prompts_fields_and_nothing_else():
    _, _, result = compiled("labelled", from_demos, keep="always")
    for _, predictor in result.program.named_predictors():
        for demo in predictor.demos:
            assert set(demo.keys()) - {"augmented"} <= set(predictor.signature.fields)


def test_a_judge_that_samples_is_frozen_so_that_gepa_compares_candidates_and_not_draws():
    import random

    draw = random.Random(0)

    def dice(request):
        return useless(request) if proposes(request) else _risks(request, draw)

    lm, _, result = compiled("gepa", dice, threads=1)
    asked = [(str(r.system), str(r.messages)) for r in lm.requests]
    assert len(asked) == len(set(asked))
    assert result.validation.difference.value is not None


def _risks(request, draw):
    return {n: draw.random() < 0.5 if n.endswith("risk") else "x" for n in fields_of(request)}


def test_bootstrapping_under_autolog_and_parallel_loses_no_prediction(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.dspy.autolog(log_traces=False)
    try:
        _, _, result = compiled("bootstrap", from_demos)
    finally:
        mlflow.dspy.autolog(disable=True)
    assert result.kept
    assert not any(record["error"] for r in (result.test.after,) for record in r.records if "error" in record)
    assert dspy.settings.lm is None


def test_roles_with_their_own_lms_keep_them_and_simba_which_would_mix_them_is_refused():
    one, two = scripted(from_demos), scripted(from_demos, name="scripted/b")
    program = auditor(one).set_lms({"assessor": one, "judge": two})
    result = compile_program(program, gold_pairs(), "labelled", **QUICK)
    assert [p.lm for _, p in result.program.named_predictors()] == [p.lm for _, p in program.named_predictors()]
    with pytest.raises(DeclarationError, match="simba"):
        compile_program(program, gold_pairs(), "simba", **QUICK)
    assert len(two.requests) == len(one.requests) > 0


def test_the_reflecting_and_the_teaching_lm_are_roles_of_their_own():
    task, mind = scripted(rule_bound), scripted(rule_bound, name="scripted/mind")
    compile_program(auditor(task), gold_pairs(), "gepa", reflection_lm=mind, **QUICK)
    assert mind.requests
    assert all(proposes(r) for r in mind.requests)
    assert not any(proposes(r) for r in task.requests)
    task, teacher = scripted(from_demos), scripted(from_demos, name="scripted/teacher")
    compile_program(auditor(task), gold_pairs(), "bootstrap", teacher_lm=teacher, **QUICK)
    assert teacher.requests


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("nonsense", {}, "name"),
        ("reanchor", {}, "probability=stated"),
        ("gepa", {"demos": 0}, "demos"),
        ("gepa", {"splits": {"train": gold_pairs(4), "validation": gold_pairs(2)}}, "leak"),
        ("gepa", {"splits": {"train": gold_pairs(4)}}, "validation split is empty"),
        ("gepa", {"budget": {"calls": 0}}, "calls"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_token(name, options, said):
    lm = scripted(useless)
    with pytest.raises(DeclarationError, match=said):
        compile_program(auditor(lm), gold_pairs(), name, **options)
    assert lm.requests == []
