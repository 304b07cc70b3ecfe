import importlib.util
import json
import sys
from pathlib import Path

import pytest

from dspy_mama.lm import roles
from dspy_mama.wiring.panel_experiment import varied
from scripted import fields_of, scripted_lm

APP = Path(__file__).resolve().parents[2] / "experiments" / "diagnosis_panel.py"


def script(request):
    values = {
        "most_likely": "Malaria", "differentials": [], "tests": [], "consensus": True, "agrees": True, "score": 5,
        "entry": "text",
    }  # fmt: skip
    return {name: values.get(name, f"text of {name}") for name in fields_of(request)}


@pytest.fixture
def app(tmp_path, monkeypatch, capsys):
    """Runs the app with a scripted LM on two cases; returns stdout and stderr."""
    from hydra.core.global_hydra import GlobalHydra

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(roles, "_embedded", lambda spec, sampling: scripted_lm(script))
    rows = [{"id": n, "case": f"case {n}", "diagnosis": name} for n, name in enumerate(("Malaria", "Gout"))]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(*arguments):
        spec = importlib.util.spec_from_file_location("diagnosis_panel", APP)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        common = ("data=table", "data.path=cases.jsonl", "runtime.progress=false", "tracking=none", "panel=small")
        monkeypatch.setattr(sys, "argv", [APP.name, *arguments, *common])
        module.experiment_arguments("default")
        try:
            module.main()
        finally:
            GlobalHydra.instance().clear()
        return capsys.readouterr()

    return run


def test_a_sweep_over_the_panel_ends_with_its_table_beside_the_papers_and_without_a_complaint(app, tmp_path):
    out, err = app("-m", "panel.doctors=2,3", "panel.methods=[mac]", "panel.stages=[primary]")
    assert "comparison" not in err
    (sweep,) = (tmp_path / "mlruns" / "sweeps").iterdir()
    table = (sweep / "panel.md").read_text("utf-8")
    for said in ("panel.doctors=2", "panel.doctors=3", "MAC, GPT-4, 4 doctors", "34.11", "paths (self-consistency)"):
        assert said in table
        assert said in out


def test_a_sweep_that_asks_for_knowledge_alone_has_a_table_of_it_alone(app, tmp_path):
    app("-m", "panel.stages=[knowledge]", "panel.methods=[mac]", "panel.doctors=2,3")
    (sweep,) = (tmp_path / "mlruns" / "sweeps").iterdir()
    table = (sweep / "panel.md").read_text("utf-8")
    assert "| panel.doctors=2 | MAC panel | 2 | 5.00 |" in table
    assert "34.11" not in table


def test_a_sweep_names_what_its_runs_do_not_share():
    given = ["panel.methods=[mac] panel.doctors=2", "panel.methods=[mac] panel.doctors=3"]
    assert varied(given) == ["panel.doctors=2", "panel.doctors=3"]
    assert varied(["panel.doctors=2"]) == ["panel.doctors=2"]
    assert varied(["lm=a", "lm=a panel.rounds=25"]) == ["as given", "panel.rounds=25"]
