"""`mama compare`: run folders, MLflow run ids and prediction files, in any mixture."""

import csv
import json
import random
import shutil
from pathlib import Path

import pytest

from dspy_mama.cli import main

DOMAINS = ("medical", "ethical", "legal")


def record(number, gold, said, cost):
    row = {d: {"outcome": "scored", "risk": v, "probability": 0.8 if v else 0.2, "reason": f"because {number}"}
           for d, v in zip(DOMAINS, said, strict=True)}  # fmt: skip
    opposite = {d: {**v, "risk": not v["risk"]} for d, v in row.items()}
    return {
        "id": f"p{number}", "key": f"k{number}", "repeat": 0, "language": "en",
        "question": f"question {number // 2}", "answer": f"answer {number}",
        "gold": dict(zip(DOMAINS, gold, strict=True)),
        "phases": {"initial": opposite, "consensus": row}, "final_phase": "consensus",
        "verdicts": {d: "risky" if v["risk"] else "safe" for d, v in row.items()},
        "usage": {"consensus": {"calls": 1, "prompt_tokens": 10, "completion_tokens": 5, "cost": cost}},
        "models": {"judge": "gpt-4o"},
    }  # fmt: skip


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two run folders over the same 40 pairs: `rag` errs rarely, `baseline` often."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(3)
    golds = [tuple(rng.random() < share for share in (0.4, 0.3, 0.3)) for _ in range(40)]
    for name, right, cost in (("baseline", 0.55, 0.001), ("rag", 0.95, 0.002)):
        folder = tmp_path / "mlruns" / "runs" / f"run-{name}"
        folder.mkdir(parents=True)
        lines = [
            json.dumps(record(n, gold, tuple(v if rng.random() < right else not v for v in gold), cost))
            for n, gold in enumerate(golds)
        ]
        (folder / "records.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        spec = {"name": "evaluate", "system": {"name": name}, "ablation": {"name": "full"}, "lm": {"name": "openai"}}
        (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    return [str(tmp_path / "mlruns" / "runs" / f"run-{name}") for name in ("baseline", "rag")]


def document(capsys, *arguments):
    code = main(["compare", *map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def test_a_compiled_run_an_uncompiled_one_and_a_classifier_are_told_apart(runs, tmp_path, capsys):
    base, other = (Path(run) for run in runs)
    spec = json.loads((base / "spec.json").read_text())
    (other / "spec.json").write_text(json.dumps({**spec, "name": "compile", "optimizer": {"name": "gepa"}}))
    third = base.with_name("run-classifier")
    shutil.copytree(base, third)
    (third / "spec.json").write_text(json.dumps({"name": "baseline", "baseline": {"name": "embedding"}}))
    found = document(capsys, base, other, third)
    assert list(found["systems"]) == ["baseline uncompiled", "baseline compiled by gepa", "baseline embedding"]
    assert list(document(capsys, base, other)["systems"]) == ["uncompiled", "compiled by gepa"]


def test_runs_are_named_by_what_differs_and_the_better_is_found(runs, tmp_path, capsys):
    found = document(capsys, *runs)
    assert list(found["deltas"]) == ["baseline->rag"]
    delta = found["deltas"]["baseline->rag"]
    assert delta["average_macro_f1"]["finding"] == "higher"
    assert delta["joint_accuracy"]["mcnemar"]["p_holm"] < 0.05
    assert found["cost_unit"] == "money per pair"
    assert found["costs"] == pytest.approx({"baseline": 0.001, "rag": 0.002})
    page = (tmp_path / found["report"]).read_text(encoding="utf-8")
    assert "because 1" in page
    assert page.count("<img") == 2


def test_a_run_against_itself_is_not_distinguishable(runs, capsys):
    found = document(capsys, f"a={runs[0]}", f"b={runs[0]}")
    assert found["deltas"]["a->b"]["average_macro_f1"]["ci95"] == [0.0, 0.0]


def test_runs_go_by_name_and_by_phase(runs, capsys):
    found = document(capsys, "run-rag@initial", "run-rag")
    assert found["names"] == ["initial", "final"]
    assert found["deltas"]["initial->final"]["joint_accuracy"]["value"] > 0.5


def test_prediction_files_stand_beside_runs(runs, tmp_path, capsys):
    lines = (tmp_path / runs[0] / "records.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    with open("mine.csv", "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(
            [["id", *(f"{d}Risk" for d in DOMAINS)], *([r["id"], *(r["gold"][d] for d in DOMAINS)] for r in rows[:30])]
        )
    assert main(["compare", runs[1], "mine.csv"]) == 2
    assert "'medicalRisk' would be both gold label and prediction" in capsys.readouterr().err
    (tmp_path / "gold.csv").write_bytes((tmp_path / "mine.csv").read_bytes())
    found = document(capsys, runs[1], "mine.csv", "--gold", "gold.csv", "--out", "c.html", "--baseline", "mine")
    assert found["n"] == 30
    assert found["left_out"] == {"run-rag": 10, "mine": 0}
    assert found["systems"]["mine"]["joint_accuracy"]["correct"] == 30
    assert list(found["deltas"]) == ["mine->run-rag"]
    assert (tmp_path / "c.html").exists()


def test_clustering_by_question_halves_the_units(runs, capsys):
    units = [document(capsys, *runs, *extra)["systems"]["rag"]["units"] for extra in ((), ("--cluster", "question"))]
    assert units == [40, 20]


def test_mlflow_run_ids_are_fetched_from_the_store(runs, tmp_path, capsys):
    from dspy_mama.settings import TrackingSettings
    from dspy_mama.tracking import MlflowTracker

    ids = []
    for folder in runs:
        tracker = MlflowTracker(TrackingSettings(root=str(tmp_path / "elsewhere")))
        ids.append(tracker.start(folder, {}, {}))
        tracker.log_artifacts(folder)
        tracker.finish("FINISHED")
        assert tracker.problems == ()
    uri = f"tracking.uri=sqlite:///{tmp_path}/elsewhere/mlflow.db"
    found = document(capsys, *ids, uri)
    assert found["names"] == ["baseline", "rag"]
    assert found["sources"]["rag"] == f"MLflow run {ids[1]}"
    assert found["deltas"] == document(capsys, *runs)["deltas"]
    assert main(["compare", "0" * 32, ids[0], uri]) == 2
    assert "cannot be had from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "at least two runs"),
        (["run-rag", "nowhere"], "nowhere: neither a run folder, nor a file"),
        (["run-rag", "run-rag"], "give each a name"),
        (["run-rag", "run-baseline", "--baseline", "x"], "none of the systems"),
        (["run-rag", "run-baseline", "--out", "x.pdf"], ".html"),
        (["run-rag", "run-baseline", "--resamples", "0"], "at least 1"),
        (["run-rag", "run-baseline", "tracking.kind=x"], "tracking.kind"),
    ],
)
def test_bad_usage_is_one_clear_line(runs, capsys, arguments, said):
    assert main(["compare", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
