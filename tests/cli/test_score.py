"""`mama score`: predictions made anywhere against gold, without an LM."""

import csv
import json
import subprocess
import sys

import pytest

from dspy_mama.cli import main

COUNTS = {"medical": (47, 37, 4, 38), "ethical": (7, 2, 1, 116), "legal": (11, 3, 7, 105)}
"""tp, fp, fn, tn of the paper's RAG system after MA3."""


@pytest.fixture
def published(tmp_path):
    """Gold and predictions whose confusion tables are the published ones; shuffled against each other."""
    gold, said = [], []
    columns = {
        d: [(1, 1)] * tp + [(0, 1)] * fp + [(1, 0)] * fn + [(0, 0)] * tn for d, (tp, fp, fn, tn) in COUNTS.items()
    }
    for number in range(126):
        row = {d: columns[d][number] for d in COUNTS}
        gold.append([f"ja{number}", *("TRUE" if row[d][0] else "FALSE" for d in COUNTS)])
        said.append([f"ja{number}", *("TRUE" if row[d][1] else "FALSE" for d in COUNTS)])
    files = {}
    for name, rows in (("gold", gold), ("pred", said[::-1])):
        files[name] = tmp_path / f"{name}.csv"
        with files[name].open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([["id", "medicalRisk", "ethicalRisk", "legalRisk"], *rows])
    return files


def document(capsys, *arguments):
    code = main(["score", *map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_published_counts_give_the_published_figures(published, capsys):
    code, found = document(capsys, "--gold", published["gold"], "--pred", published["pred"])
    assert code == 0
    assert found["n"] == 126
    for domain, figures in (
        ("medical", (0.673, 0.732, 0.714)), ("ethical", (0.905, 0.885, 0.929)), ("legal", (0.821, 0.862, 0.792)),
    ):  # fmt: skip
        own = found["domains"][domain]
        assert (own["tp"], own["fp"], own["fn"], own["tn"]) == COUNTS[domain]
        assert tuple(round(own[name], 3) for name in ("macro_f1", "precision", "recall")) == figures
        assert own["ci95"]["macro_f1"][0] < own["macro_f1"] < own["ci95"]["macro_f1"][1]
        assert own["auc"] is None
    assert round(found["average_macro_f1"], 3) == 0.800
    assert set(found["joint_accuracy"]) == {"correct", "n", "value", "ci95"}
    assert (found["seed"], found["resamples"], found["unscored"]["n"]) == (0, 1000, 0)


def test_a_file_a_domain_and_order_instead_of_ids(published, tmp_path, capsys):
    rows = list(csv.DictReader(published["gold"].open(encoding="utf-8")))
    for domain in COUNTS:
        lines = "\n".join(["label", *(row[f"{domain}Risk"] for row in rows)])
        (tmp_path / f"{domain}.csv").write_text(lines, encoding="utf-8")
    parts = [part for domain in COUNTS for part in ("--pred", f"{domain}={tmp_path / domain}.csv")]
    assert main(["score", "--gold", str(published["gold"]), *parts]) == 2
    assert "--by-order" in capsys.readouterr().err
    code, found = document(capsys, "--gold", published["gold"], *parts, "--by-order")
    assert code == 0
    assert found["joint_accuracy"]["correct"] == 126
    assert found["average_macro_f1"] == 1.0


def test_bca_and_clusters_change_the_interval_and_not_the_value(published, tmp_path, capsys):
    rows = list(csv.DictReader(published["gold"].open(encoding="utf-8")))
    gold = tmp_path / "questions.csv"
    with gold.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [*rows[0], "Question"])
        writer.writeheader()
        writer.writerows({**row, "Question": f"q{number // 3}"} for number, row in enumerate(rows))
    found = [
        document(capsys, "--gold", gold, "--pred", published["pred"], *extra)[1]
        for extra in ((), ("--interval", "bca"), ("--cluster", "question"))
    ]
    assert len({f["average_macro_f1"] for f in found}) == 1
    assert len({tuple(f["average_macro_f1_ci95"]) for f in found}) == 3
    assert [f["units"] for f in found] == [126, 126, 42]
    assert main(["score", "--gold", str(gold), "--pred", str(published["pred"]), "--cluster", "colour"]) == 2


def test_gold_may_be_a_data_set_and_predictions_a_csv_of_audit(tmp_path, capsys):
    from dspy_mama.datasets import load_pairs
    from dspy_mama.settings import DataSettings

    pairs = load_pairs(DataSettings()).pairs
    lines = ["id,medical_verdict,medical_probability", *(f"{p.id},risky,0.9" for p in pairs)]
    (tmp_path / "labels.csv").write_text("\n".join(lines), encoding="utf-8")
    _, found = document(capsys, "--gold", "sample", "--pred", tmp_path / "labels.csv")
    medical = found["domains"]["medical"]
    assert (medical["fn"], medical["tn"]) == (0, 0)
    assert medical["auc"] == 0.5
    assert any(w.startswith("legal: no file predicts it") for w in found["warnings"])


def test_nothing_to_score_is_an_error_and_not_an_empty_table(published, tmp_path, capsys):
    path = tmp_path / "p.csv"
    path.write_text("id,medical\nja1,undetermined\n", encoding="utf-8")
    assert main(["score", "--gold", str(published["gold"]), "--pred", str(path)]) == 2
    assert "nothing can be scored" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gold", "absent.csv", "--pred", "x.csv"], "no such file"),
        (["--gold", "sample", "--pred", "absent.csv"], "absent.csv"),
        (["--gold", "sample", "--pred", "absent.csv", "data.pth=x"], "data.pth: unknown setting"),
        (["--gold", "sample", "--pred", "x.csv", "--pred-column", "medical"], "FIELD=COLUMN"),
    ],
)
def test_bad_usage_is_one_clear_line(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["score", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_scoring_loads_no_lm_and_no_framework(published):
    code = (
        "import sys\nfrom dspy_mama.cli import main\n"
        f"main(['score', '--gold', {str(published['gold'])!r}, '--pred', {str(published['pred'])!r}])\n"
        "heavy = {'dspy', 'mlflow', 'chromadb', 'hydra', 'xllamacpp', 'datasets', 'pandas', 'sklearn', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_column_is_not_held_against_itself(published, capsys):
    path = str(published["pred"])
    assert main(["score", "--gold", path, "--pred", path]) == 2
    assert "would be both gold label and prediction" in capsys.readouterr().err
