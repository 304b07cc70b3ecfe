import csv
import json
import re

import pytest

from dspy_mama import load_program
from dspy_mama.cli import main
from dspy_mama.tracking import RunStore
from scripted import default_values, fields_of, scripted_lm
from systems.refine.loops import Loop, kind_of

QUESTION = "How many tablets may I take at once?"


def document(out):
    lines = out.strip().splitlines()
    assert len(lines) == 1, out
    return json.loads(lines[0])


def small_run(mama, bench, loop):
    """Folder of a run of one request a principle."""
    run = ("refine", "data=medsafetybench", f"data.path={bench}", "data.limit=9", "tracking=none", "--json")
    code, out, err = mama(*run, script=loop)
    assert code == 0, err
    return document(out)["folder"]


@pytest.fixture
def loop():
    """Every answer is refused once and accepted then, whichever is asked first."""

    def script(request):
        kind = kind_of(request)
        if kind in ("ethics", "safety"):
            again = "mended" in str(request.messages)
            return Loop([0 if again else 7], [1 if again else 4])._answer(request)
        if kind in ("generate", "refine"):
            return {"reply": "take them all" if kind == "generate" else "mended: ask a physician first"}
        return Loop([0], [1])._answer(request)

    return script


@pytest.fixture
def bench(workplace):
    """A small MedSafetyBench: five requests in each of the files of the balanced split."""
    for part in ("train", "test"):
        folder = workplace / "bench" / "datasets" / part / "gpt4"
        folder.mkdir(parents=True)
        for number in range(1, 10):
            rows = [[n, f"Help me with harm {part} {number} {n}", "No."] for n in range(5)]
            with (folder / f"med_safety_demonstrations_category_{number}.csv").open("w", newline="") as stream:
                csv.writer(stream).writerows([["", "harmful_medical_request", "safe_response"], *rows])
    return "bench"


def test_one_question_is_answered_and_mended(mama, workplace, loop):
    code, out, err = mama("refine", "--question", QUESTION, script=loop)
    assert code == 0, err
    assert "version 1: AMA 7, SRA 4, not accepted" in out
    assert "version 2: AMA 0, SRA 1, accepted" in out
    assert "mended: ask a physician first" in out
    assert "No substitute for a clinical decision" in out
    assert re.search(r"cost     \d+ calls, [\d,]+ tokens", out)


def test_a_given_answer_is_the_first_version(mama, loop):
    code, out, _ = mama("refine", "--question", QUESTION, "--answer", "Ten at once.", "--json", script=loop)
    found = document(out)
    assert code == 0
    assert [version["origin"] for version in found["versions"]] == ["given", "refined"]
    assert found["versions"][0]["text"] == "Ten at once."
    assert not any(kind_of(request) == "generate" for request in mama.requests)


def test_a_file_of_answers_is_mended(mama, workplace, loop):
    (workplace / "chat.csv").write_text("id,question,answer\na,How much?,Ten.\nb,May I?,\n", encoding="utf-8")
    code, out, err = mama("refine", "chat.csv", "--out", "mended.jsonl", "tracking=none", script=loop)
    assert code == 0, err
    rows = [json.loads(line) for line in (workplace / "mended.jsonl").read_text("utf-8").splitlines()]
    assert [(row["id"], row["first_answer"], row["accepted"]) for row in rows] == [
        ("a", "Ten.", True),
        ("b", "take them all", True),
    ]
    assert rows[0]["answer"] == "mended: ask a physician first"
    assert (rows[0]["ama_before"], rows[0]["ama_after"], rows[0]["sra_before"], rows[0]["sra_after"]) == (7, 0, 4, 1)
    assert "Table I: overall performance" in out
    code, _, _ = mama("refine", "chat.csv", "--out", "mended.csv", "tracking=none")
    with (workplace / "mended.csv").open(encoding="utf-8-sig") as stream:
        assert [row["accepted"] for row in csv.DictReader(stream)] == ["TRUE", "TRUE"]


def test_a_data_set_gives_tables_report_and_mlflow_run_over_all_principles(mama, workplace, bench, loop):
    import mlflow

    run = ("refine", "data=medsafetybench", f"data.path={bench}", "data.limit=18", "tracking.traces=1.0", "--json")
    code, out, err = mama(*run, script=loop)
    found = document(out)
    assert code == 0, err
    assert [own["n"] for own in found["principles"].values()] == [2] * 9
    assert found["iterations"]["2"] == 18
    assert found["overall"]["downgrade"]["value"] == 1
    assert found["categories"]["therapeutic"]["n"] == 18
    folder = workplace / found["folder"]
    again = load_program(folder / "program.json", lms={"default": scripted_lm(loop)})
    assert again(question=QUESTION).accepted is True
    assert {"spec.json", "records.jsonl", "summary.json", "program.json", "manifest.json", "report.html"} <= {
        file.name for file in folder.iterdir()
    }
    client = mlflow.MlflowClient(f"sqlite:///{workplace}/mlruns/mlflow.db")
    logged = client.get_run(found["mlflow_run"])
    assert logged.data.metrics["convergence"] == 1
    assert "refiner.ama_threshold" in logged.data.params
    traces = client.search_traces(locations=[logged.info.experiment_id])
    assert len(traces) == 18
    names = [span.name for span in traces[0].data.spans]
    assert {"refine", "category", "version 1", "version 2", "ethics", "safety", "plan", "helpfulness"} == set(names)


def test_an_interrupted_run_goes_on_where_it_was(mama, workplace, bench, loop, monkeypatch):
    run = ("refine", "data=medsafetybench", f"data.path={bench}", "data.limit=9", "tracking=none", "--json")

    def dies_at_the_third(request):
        if kind_of(request) == "generate" and sum(kind_of(one) == "generate" for one in mama.requests) > 3:
            raise KeyboardInterrupt
        return loop(request)

    code, _, err = mama(*run, "runtime.concurrency=1", script=dies_at_the_third)
    assert code == 1
    (folder,) = (workplace / "mlruns" / "runs").iterdir()
    kept = len(RunStore.open(folder).records())
    assert 0 < kept < 9
    code, out, err = mama(*run, "runtime.concurrency=1", script=loop)
    found = document(out)
    assert (code, found["resumed"], found["done"]) == (0, kept, 9 - kept), err


def test_only_what_failed_on_the_way_is_asked_for_again(mama, workplace, bench, loop):
    run = ("refine", "data=medsafetybench", f"data.path={bench}", "data.limit=9", "tracking=none", "--json")
    checks = []

    def check_fails_twice(request):
        kind = kind_of(request)
        checks.extend([request] if kind == "helpfulness" else [])
        return ConnectionError("connection refused") if kind == "helpfulness" and len(checks) <= 2 else loop(request)

    code, out, err = mama(*run, script=check_fails_twice)
    first = document(out)
    assert (code, first["failed"], first["done"]) == (0, 2, 7), err
    assert "asks again for what is missing" in err
    asked = len(mama.requests)
    code, out, err = mama(*run, script=loop)
    found = document(out)
    assert [kind_of(request) for request in mama.requests[asked:]] == ["helpfulness"] * 2
    assert (found["folder"], found["resumed"], found["done"]) == (first["folder"], 7, 2)
    assert found["end_states"]["refusal"]["n"] == 9
    assert found["usage"]["total"]["calls"] == len(mama.requests) - 2  # two were never answered
    code, out, _ = mama(*run, script=loop)
    assert document(out)["folder"] != first["folder"]  # that run is complete


def test_the_report_is_rebuilt_from_records_alone(mama, workplace, bench, loop):
    from dspy_mama.wiring.refine import rebuild

    folder = workplace / small_run(mama, bench, loop)
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    summary, page = rebuild(folder)
    assert page.read_bytes() == before
    assert summary == json.loads((folder / "summary.json").read_text("utf-8"))


def test_unreadable_evaluators_end_with_exit_code_three(mama, workplace, loop):
    def unreadable(request):
        return "no json" if kind_of(request) in ("ethics", "safety") else loop(request)

    (workplace / "chat.csv").write_text("id,question,answer\na,How much?,Ten.\n", encoding="utf-8")
    code, _, err = mama("refine", "chat.csv", "tracking=none", script=unreadable)
    assert code == 3
    assert "2 of 2 final scores unscored (parse 2)" in err
    row = json.loads((workplace / "chat.csv.refined.jsonl").read_text("utf-8"))
    assert (row["status"], row["accepted"], row["needs_review"]) == ("unscored", False, True)


def test_the_auditor_judges_and_gates_through_wiring_alone(mama, workplace, loop):
    def script(request):
        try:
            return loop(request)
        except StopIteration:
            return default_values(fields_of(request), risk="mended" not in str(request.messages))

    (workplace / "chat.csv").write_text("id,question,answer\na,How much?,Ten.\n", encoding="utf-8")
    common = ("refine", "chat.csv", "tracking=none", "--json", "system=baseline", "ablation=ma")
    code, out, err = mama(*common, "refiner.auditor=true", script=script)
    assert code == 0, err
    folder = workplace / document(out)["folder"]
    (record,) = RunStore.open(folder).records()
    risk = [[a["score"] for a in v["assessments"] if a["kind"] == "risk"] for v in record["versions"]]
    assert risk == [[3], [0]]
    assert record["usage"]["auditor"]["calls"] > 0
    assert set(json.loads((folder / "spec.json").read_text())) >= {"system", "ablation", "evidence"}
    (workplace / "chat.csv").write_text("id,question,answer\na,How much?,mended already\n", encoding="utf-8")
    code, out, err = mama(*common, "refiner.gate=auditor", script=script)
    assert code == 0, err
    assert (document(out)["n"], document(out)["passed_by_gate"]) == (0, 1)


def test_evaluators_are_held_against_people(mama, workplace, bench, loop, capsys):
    folder = small_run(mama, bench, loop)
    assert main(["refine", folder, "--sheet", "sheet.csv", "--json"]) == 0
    assert document(capsys.readouterr().out)["n"] == 18
    with (workplace / "sheet.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0]["ama"] == ""
    for row in rows:
        row |= {
            "rater": "r1",
            "ama": "5" if row["version"] == "1" else "0",
            "sra": "4" if row["version"] == "1" else "2",
        }
    with (workplace / "rated.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert main(["refine", folder, "--ratings", "rated.csv"]) == 0
    out = capsys.readouterr().out
    assert "Evaluators against people" in out
    assert "+1.00" in out  # the ethics evaluator sees 7 where people see 5, and agrees on the other half
    assert (workplace / folder / "agreement.md").read_text("utf-8").startswith("### Evaluators against people")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("refine",), "data=sample: holds no requests"),
        (("refine", "--answer", "x"), "--question is missing"),
        (("refine", "--question", " "), "--question is missing or empty"),
        (("refine", "--question", "q", "--answer", " "), "--answer is empty"),
        (("refine", "a.csv", "b.csv"), "one file at a time"),
        (("refine", "a.csv", "--question", "q"), "either a FILE, or --question"),
        (("refine", "a.csv", "--out", "x.txt"), "mended answers are written as .jsonl or .csv"),
        (("refine", "a.csv", "--out", "a.csv"), "this is the input (data.path), which mended answers would overwrite"),
        (("refine", "data=table", "data.path=a.csv", "--out", "a.csv"), "this is the input (data.path)"),
        (("refine", "a.csv", "--out", "linked.csv"), "this is the input (data.path)"),
        (("refine", "data=medsafetybench", "data.path=set", "--out", "set/own.csv"), "lies in data.path=set"),
        (
            ("refine", "a.csv", "refiner.criteria=[ama,own.csv]", "--out", "own.csv"),
            "this is the input (refiner.criteria)",
        ),
        (("refine", "a.csv", "--out", "new/../a.csv"), "this is the input"),
        (("refine", "a.csv", "--out", "~/a.csv"), "this is the input"),
        (("refine", "a.csv", "--out", "mlruns/runs/x/records.jsonl"), "lies among the runs"),
        (("refine", "a.csv", "refiner.sra_threshold=5"), "refiner.sra_threshold: Input should be less than 5"),
        (("refine", "a.csv", "+refiner.sampling.generator_2.temperature=0.1"), "there is no generator_2 in this loop"),
        (("refine", "none.csv"), "'none.csv' does not exist"),
        (("refine", "a.csv", "tracking.store_text=false"), "mended answers need tracking.store_text=true"),
        (("refine", "a.csv", "refiner.mandatory=1"), "must lie above ama_threshold"),
        (("refine", "a.csv", "lm.roles={judge:{model:embedded}}"), "lm.roles: unknown role"),
        (("refine", "--ratings", "x.csv"), "take the folder of a run"),
        (("refine", "."), "this is a folder"),
    ],
)
def test_bad_usage_is_one_clear_line(mama, workplace, monkeypatch, arguments, named):
    (workplace / "a.csv").write_text("id,question\na,q\n", encoding="utf-8")
    (workplace / "linked.csv").symlink_to("a.csv")
    (workplace / "set").mkdir()
    monkeypatch.setenv("HOME", str(workplace))
    code, _, err = mama(*arguments)
    assert (workplace / "a.csv").read_text(encoding="utf-8") == "id,question\na,q\n"
    assert code == 2
    assert named in err
    assert len(err.strip().splitlines()) == 1
    assert not mama.requests


def test_an_answer_that_passed_the_gate_says_so_in_every_place(mama, workplace, loop):
    def passes(request):
        return {"reason": "plain", "risky": False} if kind_of(request) == "gate" else loop(request)

    one = ("refine", "--question", QUESTION, "--answer", "Rest.", "refiner.gate=lm")
    code, out, _ = mama(*one, script=passes)
    assert code == 0
    assert "version 1: AMA -, SRA -, not assessed" in out
    assert "needs review" not in out
    found = document(mama(*one, "--json", script=passes)[1])
    assert (found["needs_review"], found["final"]["accepted"]) == (False, None)
    (workplace / "chat.csv").write_text("id,question,answer\na,How much?,Rest.\n", encoding="utf-8")
    code, out, _ = mama("refine", "chat.csv", "tracking=none", "refiner.gate=lm", script=passes)
    row = json.loads((workplace / "chat.csv.refined.jsonl").read_text("utf-8"))
    assert (row["status"], row["accepted"], row["needs_review"]) == ("passed by the gate", None, False)
    assert re.search(r"Passed by the gate, not assessed +1", out)
    assert re.search(r"Returned texts that need review +0", out)


def test_one_answer_says_why_it_has_no_text(mama):
    code, out, _ = mama("refine", "--question", QUESTION, script=lambda _: ConnectionError("connection refused"))
    assert code == 3
    assert "connection refused" in out


def test_one_answer_is_not_paid_for_where_no_text_is_kept(mama, loop):
    code, _, err = mama("refine", "--question", QUESTION, "tracking.store_text=false", script=loop)
    assert code == 2
    assert "tracking.store_text=true" in err
    assert not mama.requests


def test_answers_that_failed_are_told_apart_from_those_that_did_not_converge(mama, workplace):
    (workplace / "chat.csv").write_text("id,question\na,How much?\n", encoding="utf-8")
    run = ("refine", "chat.csv", "tracking=none", "--json")
    _, out, _ = mama(*run, script=lambda _: ConnectionError("connection refused"))
    assert (document(out)["failed"], document(out)["not_converged"]) == (1, 0)
    _, out, _ = mama(*run, script=lambda request: Loop([9], [5])._answer(request))
    assert (document(out)["failed"], document(out)["not_converged"]) == (0, 1)


@pytest.mark.parametrize("row", [{"question": "q", "principle": "\u00b2"}, {"messages": "[" * 100_000}])
def test_odd_cells_are_no_fault_of_the_library(mama, workplace, loop, row):
    (workplace / "odd.jsonl").write_text(json.dumps({"id": "a", **row}) + "\n")
    code, _, err = mama("refine", "odd.jsonl", "tracking=none", script=loop)
    assert "fault of dspy_mama" not in err
    assert code == (0 if "question" in row else 2)


def test_sampling_of_one_of_several_is_set_by_its_number(mama, workplace, loop):
    (workplace / "chat.csv").write_text("id,question\na,How much?\n", encoding="utf-8")
    own = ("refiner.ethics_evaluators=2", "+refiner.sampling.ethics_2.temperature=0.1")
    code, _, err = mama("refine", "chat.csv", "tracking=none", *own, script=loop)
    assert code == 0, err
