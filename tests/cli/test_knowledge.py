"""The knowledge task from the command line: alone, beside the diagnoses, and of one disease."""

import json

import pytest

from dspy_mama.core.disease_knowledge import DIMENSIONS
from scripted import fields_of, system_of, text_of

SMALL = ("panel=small", "runtime.progress=false")


def script(request):
    """Entries of which the panel's are better; diagnoses that all agree."""
    shown = " ".join(text_of(message) for message in request.messages)
    if "panel of experienced physicians" in system_of(request):
        return {"reason": "why", "score": 5 if "made of three" in shown else 3 if "answer of one" in shown else 0}
    if "You supervise doctors" in system_of(request):
        return {"disagreement": "the age", "entry": "made of three"}
    values = {
        "most_likely": "Malaria", "differentials": [], "tests": [], "consensus": True, "agrees": True,
        "draft_score": 50, "entry": "answer of one",
    }  # fmt: skip
    return {name: values.get(name, f"text of {name}") for name in fields_of(request)}


def document(out):
    return json.loads(out.strip().splitlines()[-1])


@pytest.fixture
def diseases(workplace):
    (workplace / "diseases.csv").write_text("disease\nFabry disease\nGaucher disease\nFabry's disease\n")
    return "diseases.csv"


def test_a_list_of_diseases_is_asked_graded_compared_and_reported(mama, workplace, diseases):
    code, out, err = mama("diagnose", diseases, *SMALL, "panel.stages=[knowledge]", script=script)
    assert code == 0, err
    assert "What is known of 2 diseases" in out
    assert "have no majority" in " ".join(out.split())
    (folder,) = (workplace / "mlruns" / "runs").iterdir()
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    assert {(r["case_id"], r["method"]) for r in records} == {
        (disease, method)
        for disease in ("Fabry disease", "Gaucher disease")
        for method in ("mac", "direct", "cot", "self_refine")
    }
    page = (folder / "report.html").read_text()
    assert page.count("They differ in:") == 2 * len(DIMENSIONS)
    assert "made one by the supervisor" in page
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["cases"], summary["diseases"], summary["stages"]) == (0, 2, ["knowledge"])
    scores = summary["scores"]["knowledge"]
    assert scores["mac"]["aetiology"]["mean_level"] == 5
    assert (scores["direct"]["aetiology"]["mean_level"], scores["direct"]["aetiology"]["right"]) == (3, 0)
    assert summary["groups"]["knowledge"]["aetiology"]["levels"]["test"] != "none"


def test_a_run_that_was_cut_short_asks_nobody_twice_and_its_report_can_be_rebuilt(mama, workplace, diseases):
    options = (*SMALL, "panel.stages=[knowledge]", "panel.methods=[mac,direct]", "--json")
    code, out, err = mama("diagnose", diseases, *options, script=script)
    assert code == 0, err
    first, asked = document(out), len(mama.requests)
    per_disease = len(DIMENSIONS) * ((3 + 1) + 1) + 2 * len(DIMENSIONS)
    assert asked == 2 * per_disease
    folder = workplace / first["folder"]
    (folder / "summary.json").unlink()
    lines = (folder / "records.jsonl").read_text().splitlines()
    (folder / "records.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    calls = sum(used["calls"] for used in json.loads(lines[-1])["usage"].values())
    code, out, err = mama("diagnose", diseases, *options)
    assert (code, document(out)["resumed"], len(mama.requests)) == (0, 3, asked + calls), err
    code, out, _ = mama("report", first["folder"], "--json")
    assert (code, document(out)["scores"]) == (0, first["scores"])


def test_knowledge_stands_beside_diagnoses_and_changes_none_of_their_numbers(mama, workplace):
    rows = [{"id": n, "case": f"case {n}", "diagnosis": name} for n, name in enumerate(("Malaria", "Gout", "Malaria"))]
    (workplace / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = (*SMALL, "panel.methods=[mac,direct]", "tracking=none", "--json")
    code, out, err = mama("diagnose", "cases.jsonl", *options, "panel.stages=[primary]", script=script)
    assert code == 0, err
    alone = document(out)
    code, out, err = mama("diagnose", "cases.jsonl", *options, "panel.stages=[primary,knowledge]", script=script)
    assert code == 0, err
    both = document(out)
    assert (both["cases"], both["diseases"], both["n"]) == (3, 2, 6 + 4)
    assert both["scores"]["primary"] == alone["scores"]["primary"]
    assert [row for row in both["differences"] if row["stage"] == "primary"] == alone["differences"]
    assert "knowledge" not in both["leaks"]


def test_mlflow_holds_the_levels_and_a_trace_of_every_entry(mama, workplace, diseases):
    from mlflow.tracking import MlflowClient

    options = (*SMALL, "panel.stages=[knowledge]", "panel.methods=[mac]", "tracking.traces=1.0", "--json")
    code, out, err = mama("diagnose", diseases, *options, script=script)
    assert code == 0, err
    client = MlflowClient(f"sqlite:///{workplace / 'mlruns' / 'mlflow.db'}")
    run = client.get_run(document(out)["mlflow_run"])
    assert run.data.metrics["knowledge/mac/prognosis/mean_level"] == 5
    (trace, _) = client.search_traces([run.info.experiment_id], max_results=10)
    names = [span.name for span in trace.data.spans]
    assert names.count("Doctor 1") == len(DIMENSIONS)
    assert {"aetiology", "grader"} <= set(names)


def test_one_disease_is_told_with_its_levels(mama):
    code, out, err = mama("diagnose", "--knowledge", " Fabry  disease", *SMALL, script=script)
    assert code == 0, err
    assert "MAC panel\n  Definition (level 5): made of three" in out
    assert "Direct\n  Definition (level 3): answer of one" in out


def test_a_finished_run_is_graded_again_and_one_without_texts_is_not(mama, diseases):
    options = (*SMALL, "panel.stages=[knowledge]", "panel.methods=[direct]", "tracking=none", "--json")
    code, out, err = mama("diagnose", diseases, *options, "panel.grading.kind=none", script=script)
    assert code == 0, err
    mama.requests.clear()
    code, out, err = mama("diagnose", "--grade", document(out)["folder"], "tracking=none", "--json", script=script)
    assert code == 0, err
    assert document(out)["scores"]["knowledge"]["direct"]["definition"]["mean_level"] == 3
    assert len(mama.requests) == 2 * len(DIMENSIONS)
    code, out, err = mama("diagnose", diseases, *options, "tracking.store_text=false", script=script)
    assert code == 0, err
    code, _, err = mama("diagnose", "--grade", document(out)["folder"], "tracking=none", script=script)
    assert code == 2
    assert "keeps no texts" in err


def test_knowledge_of_cases_without_a_disease_is_refused_and_not_passed_over(mama, workplace):
    (workplace / "cases.csv").write_text("case\nFever\n")
    code, _, err = mama("diagnose", "cases.csv", *SMALL, "panel.stages=[primary,knowledge]", script=script)
    assert code == 2
    assert "no case has one" in err
    assert mama.requests == []


def test_where_no_texts_are_kept_no_file_holds_one(mama, workplace):
    """A canary in the case, and in everything that LMs write but names of diseases and tests."""

    def quoting(request):
        said = script(request)
        said |= {"score": 5} if "score" in said else {}
        names = ("most_likely", "differentials", "tests")
        return {
            name: "CANARY" if isinstance(value, str) and name not in names else value for name, value in said.items()
        }

    row = {"id": "a", "case": "Fever CANARY", "further_tests": "CANARY", "diagnosis": "Malaria"}
    (workplace / "cases.jsonl").write_text(json.dumps(row))
    options = ("panel.stages=[primary,follow_up,knowledge]", "panel.speaker=auto", "panel.rounds=5")
    kept = ("tracking.store_text=false", "tracking.traces=1.0")
    code, _, err = mama("diagnose", "cases.jsonl", *SMALL, *options, *kept, script=quoting)
    assert code == 0, err
    (workplace / "cases.jsonl").unlink()
    files = [file for file in workplace.rglob("*") if file.is_file()]
    assert any(file.name == "mlflow.db" for file in files)
    assert [file for file in files if b"CANARY" in file.read_bytes()] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["diagnose", "--knowledge", " "], "--knowledge is empty"),
        (["diagnose", "--knowledge", "x", "--case", "y"], "one of FILE"),
        (["diagnose", "--knowledge", "x", "panel.methods=[self_consistency]"], "no majority"),
    ],
)
def test_bad_usage_is_exit_code_2_and_one_clear_line(mama, arguments, said):
    code, _, err = mama(*arguments)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
