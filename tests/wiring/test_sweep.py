"""A sweep of a study, through Hydra's own multirun, into a real MLflow server, read back from there."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from dspy_mama.lm import roles
from dspy_mama.wiring.sweep import comparison_metrics
from mlflow_server import mlflow_server
from scripted import default_values, fields_of, scripted_lm, system_of

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def app(tmp_path, monkeypatch, capsys):
    """Runs an app of `experiments/` with a scripted LM; returns exit code, stdout and stderr."""
    from hydra.core.global_hydra import GlobalHydra

    monkeypatch.chdir(tmp_path)
    lm = scripted_lm(lambda request: default_values(fields_of(request), risk="Task: final" not in system_of(request)))
    monkeypatch.setattr(roles, "_embedded", lambda spec, sampling: lm)

    def run(name, study, *arguments):
        spec = importlib.util.spec_from_file_location(name, EXPERIMENTS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        module.experiment_arguments(study)
        code = 0
        try:
            module.main()
        except SystemExit as end:
            code = end.code
        finally:
            GlobalHydra.instance().clear()
        out, err = capsys.readouterr()
        return code, out, err

    run.lm = lm
    return run


COMMON = ("data.limit=4", "runtime.progress=false", "experiment.resamples=50", "tracking.traces=0")


@pytest.mark.slow
def test_a_sweep_is_one_parent_with_comparable_runs_in_a_real_server(app, tmp_path):
    store = tmp_path / "server"
    store.mkdir()
    with mlflow_server(store) as address:
        code, out, err = app(
            "table3_systems", "table3", "-m", "system=baseline,enhanced", *COMMON, f"tracking.uri={address}"
        )
        assert code == 0, err
        client = MlflowClient(tracking_uri=address)
        experiment = client.get_experiment_by_name("dspy_mama/sample")
        runs = client.search_runs([experiment.experiment_id])
        (parent,) = (run for run in runs if "mlflow.parentRunId" not in run.data.tags)
        children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
        assert len(runs) == 3
        assert {run.data.tags["system"] for run in children} == {"baseline", "enhanced"}
        assert {run.info.status for run in runs} == {"FINISHED"}
        for name in ("sweep", "study", "ablation", "lm", "data_hash", "run_folder"):
            assert all(name in run.data.tags for run in children), name
        assert len({run.data.tags["data_hash"] for run in children}) == 1
        assert all("consensus/medical/macro_f1_low" in run.data.metrics for run in children)
        assert set(children[0].data.metrics) == set(children[1].data.metrics)
        assert "enhanced-baseline/average_macro_f1" in parent.data.metrics
        assert {item.path for item in client.list_artifacts(parent.info.run_id)} >= {"comparison.html", "paper.md"}
        for run in children:
            names = {item.path for item in client.list_artifacts(run.info.run_id)}
            assert {"report.html", "records.jsonl", "figures"} <= names
            pictures = {item.path for item in client.list_artifacts(run.info.run_id, "figures")}
            assert {"figures/confusion.png", "figures/phase_gain.png"} <= pictures
        from dspy_mama.cli import main

        ids = [run.info.run_id for run in children]
        assert main(["compare", *ids, f"tracking.uri={address}", "--resamples", "20"]) == 0
    assert "Systems beside the paper's Table 3" in out
    assert "not run" in out


def test_the_end_of_a_sweep_writes_the_comparison_and_the_papers_table(app, tmp_path):
    code, out, err = app(
        "ablation_study", "ablation", "-m", "ablation=ma,ma_without_ma2", "system=baseline", *COMMON, "tracking=none"
    )
    assert code == 0, err
    (sweep,) = (tmp_path / "mlruns" / "sweeps").iterdir()
    found = json.loads((sweep / "comparison.json").read_text(encoding="utf-8"))
    assert list(found["deltas"]) == ["ma->ma_without_ma2"]
    assert found["deltas"]["ma->ma_without_ma2"]["joint_accuracy"]["n"] == 4
    assert (sweep / "comparison.html").exists()
    assert "Ablations of RAG beside the paper's" in out
    assert "| full | average macro-F1 | not run | 0.800 (0.733 to 0.852) |" in (sweep / "paper.md").read_text("utf-8")


def test_a_run_that_fails_leaves_the_others_to_go_on_and_is_named_at_the_end(app, tmp_path):
    app.lm.engine.script = lambda request: (
        "I cannot say."
        if "Task: verification" in system_of(request) or "Task: final" in system_of(request)
        else default_values(fields_of(request))
    )
    code, _, err = app("ablation_study", "ablation", "-m", "ablation=full,ma_without_ma2,ma", *COMMON,
                         "system=baseline", "tracking=none")  # fmt: skip
    jobs = [
        json.loads(line)
        for sweep in (tmp_path / "mlruns" / "sweeps").iterdir()
        for line in (sweep / "runs.jsonl").read_text("utf-8").splitlines()
    ]
    assert [job["setting"] for job in jobs] == ["ablation=full", "ablation=ma_without_ma2", "ablation=ma"]
    assert code == 3
    assert "sweep: ablation=full failed (exit code 3)" in err


def test_an_argument_that_is_none_is_one_clear_line(app, capsys):
    with pytest.raises(SystemExit) as end:
        app("paper_tables", "default", "mlruns/runs/one")
    assert end.value.code == 2
    assert "group=choice" in capsys.readouterr().err


def test_paper_tables_take_the_newest_runs_on_the_same_data(app):
    assert app("table3_systems", "table3", "system=baseline", *COMMON, "tracking=none")[0] == 0
    code, out, _ = app("paper_tables", "default", "data.limit=4")
    assert code == 0
    assert "every measure" in out
    lines = [line for line in out.splitlines() if line.lstrip().startswith("baseline")]
    assert lines
    assert "not run" not in lines[0]
    assert "data sample, n = 4" in out.replace("\n", " ")
    code, out, _ = app("paper_tables", "default", "data.limit=3")
    assert "Nothing of this study was run" in out


def test_without_a_sweep_a_failure_is_the_exit_code(app):
    app.lm.engine.script = lambda request: "I cannot say."
    assert app("table3_systems", "table3", "system=baseline", *COMMON, "tracking=none")[0] == 3


def test_comparison_metrics_leave_out_what_has_no_interval():
    delta = {"average_macro_f1": {"value": 0.1, "ci95": [0.0, 0.2]}, "joint_accuracy": {"value": None, "ci95": None}}
    found = comparison_metrics({"deltas": {"a->b": delta}})
    assert found["b-a/average_macro_f1_low"] == 0.0
    assert found["b-a/joint_accuracy"] is None
    assert comparison_metrics({}) == {}


def test_a_second_run_of_the_same_settings_is_a_run_of_its_own(app, tmp_path):
    for _ in range(2):
        assert app("table3_systems", "table3", "system=baseline", *COMMON, "runtime.resume=false")[0] == 0
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlruns/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("dspy_mama/sample").experiment_id])
    assert len(runs) == 2
    assert len({run.data.tags["run_folder"] for run in runs}) == 2
    assert {run.data.tags["spec_hash"] for run in runs} == {runs[0].data.tags["spec_hash"]}
    assert not any("mlflow.parentRunId" in run.data.tags for run in runs)


def test_the_settings_choose_the_interval(app, tmp_path):
    arguments = ("system=baseline", "data.limit=6", "runtime.progress=false", "tracking=none")
    assert app("table3_systems", "table3", *arguments, "experiment.interval=bca")[0] == 0
    (folder,) = (tmp_path / "mlruns" / "runs").iterdir()
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["method"] == summary["final"]["method"] == "bca"
    assert "BCa bootstrap over pairs" in (folder / "report.html").read_text(encoding="utf-8")
    code, _, err = app(
        "table3_systems", "table3", *arguments, "experiment.cluster_by_question=true", "tracking.store_text=false"
    )
    assert code == 2
    assert "needs the questions" in err


DOCUMENT = """---
id: consent
title: Consent
publisher: project
url: https://example.org/consent
licence: Apache-2.0
language: en
jurisdiction: INT
domains: [ethical, medical, legal]
collection: encyclopedic
accessed: 2026-11-30
---

# Consent

Patients decide freely after they were informed.
"""


def test_relative_paths_in_a_sweep_start_where_it_was_called(app, tmp_path, monkeypatch):
    from dspy_mama.cli import main

    here = tmp_path / "elsewhere"
    (here / "input" / "documents").mkdir(parents=True)
    monkeypatch.chdir(here)
    (here / "input" / "documents" / "consent.md").write_text(DOCUMENT, encoding="utf-8")
    rows = "id,question,answer,medical\na,May I ask?,Yes.,0\nb,May I drive?,No.,1\n"
    (here / "input" / "gold.csv").write_text(rows, encoding="utf-8")
    index = ("corpus=folder", "corpus.path=input/documents", "embedder=use", "retriever.path=output/index")
    assert main(["index", "build", *index]) == 0
    before = {path.name for path in EXPERIMENTS.iterdir()}
    code, _, err = app(
        "table3_systems", "table3", "-m", "system=baseline,rag", "data=table", "data.path=input/gold.csv", *index,
        *COMMON, "tracking.root=output/runs",
    )  # fmt: skip
    assert code == 0, err
    assert Path.cwd() == here
    runs = {}
    for folder in (here / "output" / "runs" / "runs").iterdir():
        spec = json.loads((folder / "spec.json").read_text("utf-8"))
        assert spec["data"]["path"] == "input/gold.csv"
        runs[spec["system"]["name"]] = (folder / "records.jsonl").read_text("utf-8").splitlines()
    assert {system: len(records) for system, records in runs.items()} == {"baseline": 2, "rag": 2}
    passages = json.loads(runs["rag"][0])["phases"]["verification"]["ethical"]["passages"]
    assert [passage["document"] for passage in passages] == ["consent"]
    assert {path.name for path in here.iterdir()} == {"input", "mlruns", "output"}
    assert [path.name for path in (here / "mlruns").iterdir()] == ["sweeps"]
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere"}
    assert {path.name for path in EXPERIMENTS.iterdir()} - {"__pycache__"} <= before
