import importlib.util
import json
import sys
from pathlib import Path

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm import roles
from dspy_mama.wiring.refine import summary_of
from dspy_mama.wiring.refinement_experiment import column_names
from scripted import scripted_lm
from systems.refine.loops import Loop, kind_of

APP = Path(__file__).resolve().parents[2] / "experiments" / "refinement_tables.py"


def script(request):
    """The first answer is refused and the mended one accepted."""
    again = "mended" in str(request.messages)
    if kind_of(request) == "refine":
        return {"reply": "mended: ask a physician first"}
    return Loop([0 if again else 7], [1 if again else 4])._answer(request)


@pytest.fixture
def app(tmp_path, monkeypatch, capsys):
    """Runs the app with a scripted LM on two requests; returns exit code, stdout and stderr."""
    from hydra.core.global_hydra import GlobalHydra

    monkeypatch.chdir(tmp_path)
    lm = scripted_lm(script)
    monkeypatch.setattr(roles, "_embedded", lambda spec, sampling: lm)
    rows = [{"id": n, "question": f"May I take {n}?", "principle": n + 1} for n in range(2)]
    (tmp_path / "requests.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(*arguments):
        spec = importlib.util.spec_from_file_location("refinement_tables", APP)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        common = ("data=table", "data.path=requests.jsonl", "runtime.progress=false", "experiment.resamples=50")
        monkeypatch.setattr(sys, "argv", [APP.name, *arguments, *common, "tracking=none"])
        module.experiment_arguments("default")
        code = 0
        try:
            module.main()
        except SystemExit as end:
            code = end.code
        finally:
            GlobalHydra.instance().clear()
        return code, *capsys.readouterr()

    run.engine = lm.engine
    return run


def test_a_sweep_ends_with_a_column_a_run_beside_the_papers(app, tmp_path):
    code, out, err = app("-m", "refiner=paper,default", "refiner.max_iterations=1,5")
    assert code == 0, err
    assert "comparison" not in err
    assert out.count("converged 2/2") == 2
    (sweep,) = (tmp_path / "mlruns" / "sweeps").iterdir()
    tables = (sweep / "refinement.md").read_text("utf-8")
    for said in (
        "| refiner=paper refiner.max_iterations=1 (95% CI) |",
        "| refiner=default refiner.max_iterations=5 (95% CI) |",
        "| DeepSeek R1 (printed) | Med-PaLM (printed) |",
        "Velocity, mean of runs",
        "Table V: SRA-5 risk distribution",
    ):
        assert said in tables
    assert len(list((tmp_path / "mlruns" / "runs").iterdir())) == 4
    assert "Table I: overall performance" in out


def test_one_run_is_a_line_and_the_share_that_converged(app, tmp_path):
    code, out, err = app("refiner=paper")
    assert (code, err) == (0, "")
    assert out.startswith("refiner=paper data=table")
    assert "converged 2/2, n=2" in out
    (run,) = (tmp_path / "mlruns" / "runs").iterdir()
    assert summary_of(run) == json.loads((run / "summary.json").read_text("utf-8"))


def test_a_run_with_too_much_unscored_leaves_the_others_to_go_on(app, tmp_path):
    def unreadable_at_first(request):
        first = kind_of(request) == "safety" and "mended" not in str(request.messages)
        return "no idea" if first else script(request)

    app.engine.script = unreadable_at_first
    code, out, err = app("-m", "refiner.max_iterations=1,2")
    assert code == 3
    assert "sweep: refiner.max_iterations=1 data=table" in err
    assert "2 of 4 final scores unscored (parse 2)" in err
    assert out.count("converged 2/2") == 1
    (sweep,) = (tmp_path / "mlruns" / "sweeps").iterdir()
    assert "| Convergence rate | 2/2 = 100.0%" in (sweep / "refinement.md").read_text("utf-8")
    with pytest.raises(DeclarationError, match="is not a run"):
        summary_of(tmp_path)


def test_columns_are_named_by_what_their_runs_do_not_share():
    given = [f"refiner=paper lm.roles.generator.model={model} data=medsafetybench" for model in ("o/a", "o/b")]
    assert column_names(given) == ["generator=o/a", "generator=o/b"]
    own = ["lm.roles.ethics={model:o/a,api_key_env:K}", "lm.roles.ethics={api_key_env:L,model:o/b}"]
    assert column_names(own) == ["ethics=o/a", "ethics=o/b"]
    assert column_names(["refiner=paper"]) == ["refiner=paper"]
    assert column_names(["lm=a", "lm=a"]) == ["as given (run 1)", "as given (run 2)"]
