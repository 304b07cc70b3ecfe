import json

import pytest

from dspy_mama.cli import main
from dspy_mama.systems.mac.grading_signatures import BOND_SCALE
from scripted import fields_of, system_of, user_of

METHODS = {"mac", "direct", "cot", "self_consistency", "self_refine"}
SMALL = ("panel=small", "runtime.progress=false")
DISEASE = "Fabry disease"


def script(request):
    """Doctors name Fabry disease; the supervisor agrees; the grader gives 5 to the truth and 0 to the rest."""
    if "panel of experienced physicians" in system_of(request):
        truth = user_of(request).split("truth ## ]]\n")[1].splitlines()[0]
        answer = user_of(request).split("answer ## ]]\n")[1]
        low = 1 if "recommended tests" in system_of(request) else 0
        return {"reason": "spelling", "score": 5 if truth in answer or low else low}
    values = {
        "most_likely": DISEASE, "differentials": ["Gaucher disease"], "tests": ["enzyme"], "consensus": True,
        "agrees": True, "score": 50, "feedback": "good",
    }  # fmt: skip
    return {name: values.get(name, f"text of {name}") for name in fields_of(request)}


@pytest.fixture
def cases(workplace):
    file = workplace / "cases.jsonl"
    rows = [
        {"id": "a", "case": "A girl with burning feet.", "further_tests": "Enzyme low.", "diagnosis": DISEASE},
        {"id": "b", "case": "A man with a cough, known Gaucher disease.", "further_tests": "X-ray clear.",
         "diagnosis": "Gaucher disease type 1"},
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def document(out):
    return json.loads(out.strip().splitlines()[-1])


def test_a_file_is_diagnosed_by_every_method_at_both_stages_and_compared(mama, workplace, cases):
    code, out, err = mama("diagnose", cases, *SMALL, script=script)
    assert code == 0, err
    assert "Accuracy by stage and method" in out
    assert out.index("Accuracy by stage") > out.index("Paired differences")
    assert "grades its own diagnoses" in err
    (folder,) = (workplace / "mlruns" / "runs").iterdir()
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    assert {(r["case_id"], r["stage"], r["method"]) for r in records} == {
        (case, stage, method) for case in "ab" for stage in ("primary", "follow_up") for method in METHODS
    }
    for record in records:
        assert record["grades"]["most_likely"]["score"] == (5 if record["case_id"] == "a" else 0)
        assert ("tests" in record["grades"]) == (record["stage"] == "primary")
    names = {file.name for file in folder.iterdir()}
    assert {"spec.json", "records.jsonl", "summary.json", "program.json", "manifest.json", "report.html"} <= names


def test_the_same_command_again_asks_nobody_and_a_report_is_rebuilt_alike(mama, workplace, cases):
    code, out, _ = mama("diagnose", cases, *SMALL, "--json", script=script)
    assert code == 0
    first = document(out)
    assert first["scores"]["primary"]["mac"]["most_likely"]["value"] == 0.5
    assert first["unscored_rate"] == 0
    code, out, _ = mama("report", first["folder"], "--json")
    again = document(out)
    assert code == 0
    assert {name: again[name] for name in ("scores", "differences", "usage", "groups")} == {
        name: first[name] for name in ("scores", "differences", "usage", "groups")
    }


def test_mlflow_holds_the_numbers_and_a_trace_shows_every_turn_and_grade(mama, workplace, cases):
    from mlflow.tracking import MlflowClient

    code, out, _ = mama("diagnose", cases, *SMALL, "tracking.traces=1.0", "--json", script=script)
    assert code == 0
    found = document(out)
    client = MlflowClient(f"sqlite:///{workplace / 'mlruns' / 'mlflow.db'}")
    run = client.get_run(found["mlflow_run"])
    assert run.data.metrics["primary/mac/most_likely/accuracy"] == 0.5
    traces = client.search_traces([run.info.experiment_id], max_results=100)
    assert len(traces) == 20
    panel = next(t for t in traces if t.info.tags.get("mlflow.traceName") == "diagnosis mac")
    names = [span.name for span in panel.data.spans]
    assert any(name.endswith("Doctor 1") for name in names)
    assert any(name.endswith("Supervisor") for name in names)
    assert {"grader", "most_likely"} <= set(names)


def test_one_case_prints_each_methods_diagnosis_and_nobody_grades_without_a_truth(mama):
    code, out, err = mama("diagnose", "--case", "A girl with burning feet.", *SMALL, script=script)
    assert code == 0, err
    assert out.count(DISEASE) >= 5
    assert "not to be used for a patient" in out
    assert not any("panel of experienced physicians" in system_of(request) for request in mama.requests)


def test_a_finished_run_is_graded_again_without_a_diagnosis(mama, workplace, cases):
    code, out, err = mama("diagnose", cases, *SMALL, "panel.grading.kind=none", "--json", script=script)
    assert code == 0, err
    folder = document(out)["folder"]
    assert document(out)["scores"]["primary"]["mac"]["most_likely"]["n"] == 0
    assert document(out)["scores"]["primary"]["mac"]["most_likely"]["matched"]["n"] == 2
    mama.requests.clear()
    code, out, err = mama("diagnose", "--grade", folder, "panel.grading.swap=false", "--json", script=script)
    assert code == 0, err
    found = document(out)
    assert found["folder"] != folder
    assert found["scores"]["primary"]["mac"]["most_likely"]["value"] == 0.5
    assert mama.requests
    assert all("panel of experienced physicians" in system_of(request) for request in mama.requests)


def test_repeats_are_records_of_their_own_with_a_kappa(mama, cases):
    options = ("panel.repeats=3", "panel.methods=[direct]", "panel.stages=[primary]", "tracking=none")
    code, out, err = mama("diagnose", cases, *SMALL, *options, "--json", script=script)
    assert code == 0, err
    found = document(out)
    assert (found["n"], found["repeats"]) == (6, 3)
    assert found["agreement"]["primary"]["direct"]["most_likely"]["levels"]["kappa"] == pytest.approx(1)


def test_cases_whose_text_holds_the_diagnosis_are_left_out_of_the_second_table(mama, workplace):
    file = workplace / "leaky.csv"
    file.write_text(
        f"id,case,diagnosis\n1,Burning feet. {DISEASE} was found.,{DISEASE}\n2,Cough,Gaucher disease type 1\n"
    )
    options = ("panel.methods=[direct]", "panel.stages=[primary]", "tracking=none")
    code, out, err = mama("diagnose", str(file), *SMALL, *options, "--json", script=script)
    assert code == 0, err
    found = document(out)
    assert found["leaks"] == {"primary": 1}
    assert found["scores"]["primary"]["direct"]["most_likely"]["value"] == 0.5
    assert found["without_leaks"]["primary"]["direct"]["most_likely"]["value"] == 0.0


def test_peoples_ratings_stand_beside_the_graders(mama, workplace, cases, capsys):
    def main_of(*arguments):
        code = main(list(arguments))
        return code, *capsys.readouterr()

    ratings = workplace / "people.csv"
    ratings.write_text(
        "id,unit,score,rater\na/primary/direct,most_likely,5,x\na/primary/direct,most_likely,4,y\n"
        "b/primary/direct,most_likely,0,x\nb/primary/direct,tests,,x\nzz,most_likely,5,x\n"
    )
    options = ("panel.methods=[direct]", "panel.stages=[primary]", "tracking=none")
    code, out, err = mama("diagnose", cases, *SMALL, *options, "--json", script=script)
    assert code == 0, err
    folder = document(out)["folder"]
    code, out, err = main_of("diagnose", folder, "--ratings", str(ratings), "--json")
    assert code == 0, err
    people = json.loads(out)
    assert people["units"]["most_likely"]["n"] == 2
    assert people["units"]["most_likely"]["equal"] == 0.5
    assert people["unknown"] == 1
    assert (workplace / folder / "people.json").exists()
    ratings.write_text("id,unit,score,rater\na/primary/direct,most_likely,1,x\n")
    code, _, err = main_of("diagnose", folder, "--ratings", str(ratings))
    assert code == 2
    assert "'1' is no level of most_likely" in err


def test_unreadable_grades_are_counted_and_never_wrong(mama, cases):
    def silent(request):
        return "no idea" if "panel of experienced physicians" in system_of(request) else script(request)

    options = ("panel.methods=[direct]", "panel.stages=[primary]", "tracking=none")
    code, out, _ = mama("diagnose", cases, *SMALL, *options, "--json", script=silent)
    found = document(out)
    assert code == 3
    score = found["scores"]["primary"]["direct"]["most_likely"]
    assert (score["n"], score["value"]) == (0, None)
    assert score["unscored"] == {"n": 2, "of": 2, "by_kind": {"parse": 2}}


def test_texts_are_not_kept_where_they_must_not_be(mama, workplace, cases):
    code, _, err = mama("diagnose", cases, *SMALL, "tracking.store_text=false", script=script)
    assert code == 0, err
    (folder,) = (workplace / "mlruns" / "runs").iterdir()
    for file in folder.iterdir():
        assert "burning feet" not in file.read_text(errors="ignore"), file


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["diagnose", "--case", "  "], "--case is empty"),
        (["diagnose", "data=sample"], "holds no patients' cases"),
        (["diagnose", "--case", "x", "lm.roles.nurse.model=embedded"], "nurse"),
        (["diagnose", "--case", "x", "panel.grading.repeats=0"], "panel.grading.repeats"),
        (["diagnose", "--grade", "nowhere"], "nowhere"),
    ],
)
def test_bad_usage_is_exit_code_2_and_one_clear_line(mama, arguments, said):
    code, _, err = mama(*arguments)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_no_prompt_of_a_diagnosis_holds_the_truth_and_the_scale_is_whole(mama, cases):
    mama("diagnose", cases, *SMALL, "tracking=none", script=script)
    graders = [r for r in mama.requests if "panel of experienced physicians" in system_of(r)]
    others = [r for r in mama.requests if "panel of experienced physicians" not in system_of(r)]
    assert not any("Gaucher disease type 1" in user_of(request) for request in others)
    diagnoses = [r for r in graders if "suggested diagnosis" in system_of(r)]
    assert all(f"{level} = {meaning}." in system_of(diagnoses[0]) for level, meaning in BOND_SCALE.items())
