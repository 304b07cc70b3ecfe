import json
from pathlib import Path

import pytest

from dspy_mama.cli import main
from dspy_mama.tracking.run_store import is_complete

FEW = ("experiment.resamples=50", "tracking=none")


@pytest.fixture
def run(mama):
    def call(*arguments):
        code, out, err = mama("baseline", *arguments, *FEW, "--json")
        return code, json.loads(out), err

    return call


@pytest.fixture
def plain(workplace, capsys):
    """A command that takes no settings."""

    def call(*arguments):
        code = main([*arguments, "--resamples", "50", "--json"])
        return code, json.loads(capsys.readouterr()[0])

    return call


def test_a_baseline_leaves_a_whole_run_and_asks_no_lm(run, mama, workplace):
    code, said, _ = run("baseline=tfidf", "--out", "predictions.csv")
    assert code == 0
    assert is_complete(Path(said["folder"]))
    assert mama.requests == []
    assert set(said["phases"]) == {"classifier"}
    low, high = said["final"]["domains"]["medical"]["ci95"]["macro_f1"]
    assert low < said["final"]["domains"]["medical"]["macro_f1"] < high
    assert "judged out of fold (risky: medical 15 of 40, ethical 7 of 40, legal 10 of 40)" in said["label_banner"]
    spec = json.loads((Path(said["folder"]) / "spec.json").read_text())
    assert spec["baseline"]["name"] == "tfidf"
    assert not set(spec) & {"lm", "system", "ablation", "retriever"}
    program = json.loads((Path(said["folder"]) / "program.json").read_text())
    assert set(program["domains"]["medical"]["held_out_in"]) == {f"s{n}" for n in range(1, 41)}
    assert (workplace / "predictions.csv").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--out", "gold.jsonl"), "this is the input (data.path), which predictions would overwrite"),
        (("--out", "here/gold.jsonl"), "this is the input (data.path)"),
        (("--out", "~/gold.jsonl"), "this is the input (data.path)"),
        (("baseline=embedding", "--head", "gold.json"), "this is the input (system.head), which heads would overwrite"),
        (("baseline=embedding", "--head", "gold.csv"), "heads are written as .json"),
    ],
)
def test_predictions_never_overwrite_what_they_come_from(mama, workplace, monkeypatch, arguments, said):
    gold = workplace / "gold.jsonl"
    gold.write_text('{"id": "1", "question": "Q?", "answer": "A.", "medical": 1}\n', encoding="utf-8")
    (workplace / "here").symlink_to(".")
    before = gold.read_bytes()
    monkeypatch.setenv("HOME", str(workplace))
    code, _, err = mama("baseline", "data=table", "data.path=gold.jsonl", "system.head=gold.json", *arguments, *FEW)
    assert code == 2
    assert said in err
    assert gold.read_bytes() == before


def test_a_baseline_stands_beside_an_lm_in_the_comparison_table(run, mama, plain):
    baseline = run("baseline=length")[1]["folder"]
    audit = mama("evaluate", "data=sample", "system=enhanced", *FEW, "--json")
    lm = json.loads(audit[1])["folder"]
    code, found = plain("compare", lm, baseline)
    assert code == 0
    assert set(found["systems"]) == {"enhanced", "baseline length"}


def test_its_report_is_rebuilt_from_records_alone(run, mama):
    folder = run("baseline=majority")[1]["folder"]
    before = json.loads((Path(folder) / "summary.json").read_text())
    code, out, _ = mama("report", folder, "--json")
    assert code == 0
    after = json.loads(out)
    assert {name: after[name] for name in ("final", "label_banner")} == {
        name: before[name] for name in ("final", "label_banner")
    }
    page = (Path(folder) / "report.html").read_text("utf-8")
    assert "<h1>Supervised baseline</h1>" in page
    assert "Classifier: majority class" in page


def test_its_predictions_can_be_scored_as_anyones(run, plain):
    said = run("baseline=tfidf", "--out", "p.jsonl")[1]
    code, scored = plain("score", "--gold", "p.jsonl", "--pred", "p.jsonl")
    assert code == 0, scored
    assert scored["average_macro_f1"] == pytest.approx(said["final"]["average_macro_f1"])


def test_data_without_gold_are_refused(run, workplace):
    Path("pairs.csv").write_text("id,question,answer\n1,a?,b\n2,c?,d\n")
    code, said, _ = run("baseline=tfidf", "data=table", "data.path=pairs.csv")
    assert code == 2
    assert "nothing to learn (medical: no gold label to learn from" in said["error"]


def test_another_ending_of_the_predictions_is_refused_before_training(run):
    code, said, _ = run("--out", "p.xlsx")
    assert code == 2
    assert ".jsonl or .csv" in said["error"]


def test_evaluating_with_the_exemplar_asks_no_lm_tells_its_limits_and_gives_figures_out_of_fold(mama):
    code, out, _ = mama("evaluate", "data=sample", "system=exemplar", *FEW, "--json")
    said = json.loads(out)
    assert code == 0
    assert mama.requests == []
    assert set(said["phases"]) == {"initial"}
    assert "labels that no expert has checked" in said["label_banner"]
    # It would be 1.0 on pairs that it learnt from.
    assert 0.5 < said["final"]["domains"]["medical"]["auc"] < 0.85
    spec = json.loads((Path(said["folder"]) / "spec.json").read_text())
    assert spec["exemplar"].startswith("exemplar:shipped-")
    assert "lm" not in spec


def test_one_pair_is_audited_by_the_exemplar_with_its_limits(mama):
    code, out, _ = mama("audit", "system=exemplar", "--question", "May I?", "--answer", "Take it all at once.")
    assert code == 0
    assert mama.requests == []
    assert "p=" in out
    assert "The exemplar is no LM" in out


def test_a_head_of_ones_own_is_trained_and_used(mama, workplace):
    code, out, _ = mama("baseline", "--head", "mine.json", *FEW, "baseline.text=answer", "data.limit=20", "--json")
    assert code == 0
    assert json.loads(out)["figures"]["length"]["medical"]["auc"]["ci95"]
    pair = ("--question", "May I?", "--answer", "Take it all at once.")
    code, out, _ = mama("audit", "system=exemplar", "system.head=mine.json", *pair, "--json")
    assert code == 0
    assert json.loads(out)["models"]["assessor"].startswith("exemplar:mine-")


def test_a_fine_tuned_encoder_runs_as_every_baseline_and_tells_what_was_cut(run, tmp_path):
    pytest.importorskip("torch", reason="needs the extra [baselines]")
    pytest.importorskip("transformers", reason="needs the extra [baselines]")
    from systems.supervised.tiny_bert import save_tiny_bert

    folder = save_tiny_bert(tmp_path / "bert")
    tune = (
        "baseline.bert.epochs=1",
        "baseline.bert.learning_rates=[0.001]",
        "baseline.folds=2",
        "runtime.progress=false",
    )
    code, said, _ = run("baseline=bert", f"baseline.bert.model={folder}", "data.limit=24", *tune)
    assert code == 0
    assert set(said["phases"]) == {"classifier"}
    assert said["truncation"]["pairs"] == 24
    assert said["truncation"]["cut"] > 0
    assert said["truncation"]["unknown_share"] > 0.5  # its vocabulary is not that of the sample


def test_the_doctor_looks_at_the_head_and_asks_no_lm(mama):
    code, out, _ = mama("doctor", "system=exemplar", "tracking=none")
    assert code == 0
    assert "this system asks no LM but exemplar:shipped-" in out
    assert mama.requests == []
    code, out, _ = mama("doctor", "system=exemplar", "system.head=nowhere.json", "tracking=none")
    assert code == 1
    assert "nowhere.json" in out
