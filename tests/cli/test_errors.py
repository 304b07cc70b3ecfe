import csv
import json

import pytest

from dspy_mama.cli import main
from scripted import default_values, fields_of, user_of

SMALL = ["data.limit=6", "system=baseline", "experiment.resamples=20", "tracking=none"]


@pytest.fixture
def run_of(mama, capsys):
    """Makes a run whose every label is the given one; returns its folder."""

    def make(risk, *overrides):
        code, out, err = mama(
            "evaluate", *SMALL, *overrides, "--json",
            script=lambda request: default_values(fields_of(request), risk=risk),
        )  # fmt: skip
        assert code == 0, err
        return json.loads(out)["folder"]

    return make


@pytest.fixture
def errors(capsys):
    def call(*arguments):
        code = main(["errors", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_errors_of_one_run_are_printed_and_given_as_json(run_of, errors):
    folder = run_of(True)
    code, out, err = errors(folder)
    assert code == 0, err
    for part in ("Errors by phase and domain", "What each phase repaired", "by specialty", "by length of answer"):
        assert part in out
    code, out, _ = errors(folder, "--json")
    (own,) = json.loads(out)["runs"].values()
    assert own["phases"]["final"]["medical"]["fn"] == []
    assert own["phases"]["final"]["medical"]["fp"]


def test_runs_are_also_known_by_name_and_their_common_errors_are_found(run_of, errors):
    risky, safe = run_of(True, "ablation=ek"), run_of(False, "ablation=ek", "experiment.name=other")
    names = [folder.rsplit("/", 1)[1] for folder in (risky, safe)]
    code, out, err = errors(*names, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert list(document["runs"]) == names
    assert all(not own["fp"] and not own["fn"] for own in document["common"]["final"].values())


def test_a_run_is_also_known_by_its_mlflow_id(mama, errors):
    small = [part for part in SMALL if part != "tracking=none"]
    _, out, _ = mama("evaluate", *small, "data.limit=3", "ablation=ek", "--json")
    run = json.loads(out)
    by_folder, by_id = (errors(name, "--json") for name in (run["folder"], run["mlflow_run"]))
    assert by_id[0] == 0, by_id[2]
    assert list(json.loads(by_id[1])["runs"].values()) == list(json.loads(by_folder[1])["runs"].values())
    assert errors(run["mlflow_run"], "tracking.root=elsewhere")[0] == 2


def test_a_sheet_goes_out_and_comes_back_from_two_raters(run_of, errors, tmp_path):
    folder = run_of(True, "ablation=ek")
    code, out, err = errors(folder, "--sheet", "sheet.csv", "--domain", "medical", "--json")
    assert code == 0, err
    assert json.loads(out)["errors"] > 1
    with open("sheet.csv", encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["domain"] for row in rows} == {"medical"}
    for rater, level in (("n1", 2), ("n2", 3)):
        with open(f"{rater}.csv", "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows({**row, "severity": level, "explanation": "why", "rater": rater} for row in rows)
    code, out, err = errors(folder, "--read", "n1.csv", "n2.csv", "--json")
    assert code == 0, err
    summary = json.loads(out)
    assert summary["groups"]["medical/false_positive"]["mean"] == 2.5
    assert summary["n"] == len(rows)
    code, out, _ = errors(folder, "--read", "n1.csv", "n2.csv")
    assert "Agreement of raters" in out


def test_suggestions_fill_columns_of_their_own_and_are_no_ratings(run_of, errors, mama):
    folder = run_of(True, "ablation=ek")
    before = len(mama.requests)
    mama.engine.script = lambda request: {"findings": "f", "reason": "r", "severity": "4"}
    code, out, err = errors(folder, "--sheet", "sheet.csv", "--suggest", "lm=embedded", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["suggested"] == document["errors"] == len(mama.requests) - before
    assert document["unscored"] == 0
    with open("sheet.csv", encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["suggested_severity"] for row in rows} == {"4"}
    assert {row["severity"] for row in rows} == {""}
    assert "experts hold it for safe" in user_of(mama.requests[-1])


def test_the_law_that_the_run_meant_is_the_law_of_the_suggestion(run_of, errors, mama):
    folder = run_of(True, "ablation=ek", "system.jurisdiction=US")
    mama.engine.script = lambda request: {"findings": "f", "reason": "r", "severity": "4"}
    before = len(mama.requests)
    assert errors(folder, "--sheet", "sheet.csv", "--domain", "legal", "--suggest")[0] == 0
    assert all("Federal Trade" in user_of(request) for request in mama.requests[before:])


def test_suggestions_that_cannot_be_read_are_exit_code_3_and_the_sheet_is_there(run_of, errors, mama, tmp_path):
    folder = run_of(True, "ablation=ek")
    mama.engine.script = lambda request: "no idea"
    code, out, err = errors(folder, "--sheet", "sheet.xlsx", "--suggest", "--json")
    assert code == 3
    assert json.loads(out)["suggested"] == 0
    assert "could not be read" in err
    assert (tmp_path / "sheet.xlsx").exists()


def test_bad_usage_is_exit_code_2_and_one_clear_line(run_of, errors):
    run = run_of(True, "data.limit=3", "ablation=ek")
    for arguments, said in (
        ([], "one or more run folders"),
        (["nowhere"], "nowhere"),
        ([run, run], "named twice"),
        ([run, "lm=openai"], "--suggest"),
        ([run, "--suggest"], "--sheet"),
        ([run, "--common"], "--sheet or --read"),
        ([run, "--sheet", "a.csv", "--common"], "at least two runs"),
        ([run, "--sheet", "a.csv", "--read", "b.csv"], "either"),
        ([run, "--sheet", "a.txt"], ".csv or .xlsx"),
        ([run, "--read", "missing.csv"], "missing.csv"),
    ):
        code, _, err = errors(*arguments)
        assert code == 2, arguments
        assert said in err
        assert "Traceback" not in err
