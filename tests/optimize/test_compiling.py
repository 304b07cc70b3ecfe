"""What holds whichever optimiser is taken: keeping, demonstrations, roles, refusals."""

import dspy
import pytest

from dspy_mama.core import DeclarationError
from dspy_mama.optimize import compile_program
from optimize.compile_parts import (
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
from optimize.helped import QUICK, compiled
from scripted import fields_of


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
