import csv
import dataclasses
import json
import os
import re
import signal
import time

import pytest

from dspy_mama.cli import main
from dspy_mama.tracking import RunStore
from scripted import default_values, fields_of, text_of

ANSWER = "Please see a physician if the cough lasts longer than three weeks."


def document(out):
    lines = out.strip().splitlines()
    assert len(lines) == 1, out
    return json.loads(lines[0])


def test_demo_prints_the_three_phases_and_names_run_and_report(mama, workplace):
    code, out, err = mama("demo")
    assert code == 0, err
    for part in ("MA1", "MA2", "MA3", "report.html", "mlflow    run"):
        assert part in out
    (run,) = (workplace / "mlruns" / "runs").iterdir()
    names = {file.name for file in run.iterdir()}
    assert {"spec.json", "records.jsonl", "summary.json", "program.json", "manifest.json", "report.html"} <= names


def test_the_report_lists_pairs_in_the_order_of_the_data_whichever_finished_first(mama, workplace, monkeypatch):
    def ids(page):
        return re.findall(r'class="id">([^<]+)<', page)

    written = RunStore.read
    assert mama("evaluate", "data.limit=4", "tracking=none", "tracking.root=a")[0] == 0
    shuffled = lambda store: dataclasses.replace(written(store), records=written(store).records[::-1])  # noqa: E731
    monkeypatch.setattr(RunStore, "read", shuffled)
    assert mama("evaluate", "data.limit=4", "tracking=none", "tracking.root=b")[0] == 0
    first, second = (ids(next((workplace / root).glob("runs/*/report.html")).read_text()) for root in "ab")
    assert len(first) == 4
    assert first == second


def test_evaluate_prints_one_json_document_with_every_phase(mama):
    code, out, _ = mama("evaluate", "data.limit=3", "--json")
    result = document(out)
    assert code == 0
    assert result["n"] == 3
    assert set(result["phases"]) == {"initial", "verification", "consensus"}
    medical = result["phases"]["consensus"]["domains"]["medical"]
    assert medical["n"] == 3
    assert medical["tp"] + medical["fp"] + medical["fn"] + medical["tn"] == 3
    assert result["folder"].startswith("mlruns")


def test_mlflow_holds_the_same_numbers(mama, workplace):
    from mlflow.tracking import MlflowClient

    _, out, _ = mama("evaluate", "data.limit=3", "--json")
    result = document(out)
    run = MlflowClient(f"sqlite:///{workplace / 'mlruns' / 'mlflow.db'}").get_run(result["mlflow_run"])
    score = result["phases"]["consensus"]["domains"]["medical"]["macro_f1"]
    assert run.data.metrics["consensus/medical/macro_f1"] == pytest.approx(score)
    assert run.data.tags["system"] == "rag"
    assert run.info.status == "FINISHED"
    artifacts = {item.path for item in MlflowClient(f"sqlite:///{workplace / 'mlruns' / 'mlflow.db'}").list_artifacts(
        result["mlflow_run"]
    )}  # fmt: skip
    assert {"records.jsonl", "report.html", "spec.json"} <= artifacts


def test_too_many_unscored_is_exit_code_3_with_the_share(mama):
    code, out, err = mama("evaluate", "data.limit=2", "--json", script=lambda request: "I have no idea.")
    assert code == 3
    assert "unscored" in err
    assert document(out)["unscored_rate"] == 1.0


def test_unscored_is_never_counted_as_safe(mama):
    _, out, _ = mama("evaluate", "data.limit=2", "--json", script=lambda request: "I have no idea.")
    verdicts = document(out)["verdicts"]
    assert all(verdicts[domain].get("safe", 0) == 0 for domain in verdicts)


def test_audit_of_one_pair_prints_verdicts_and_the_limits(mama):
    code, out, _ = mama("audit", "--question", "I have had a cough for weeks.", "--answer", ANSWER)
    assert code == 0
    assert out.count("risky") == 3
    assert "No substitute for a clinical decision" in out


def test_audit_of_a_file_writes_labels_and_resumes(mama, workplace):
    file = workplace / "pairs with blanks.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["id", "question", "answer"], ["a", "Q one?", ANSWER], ["b", "Q two?", ANSWER]])
    code, out, err = mama("audit", str(file), "--out", str(workplace / "labels.csv"), "--json")
    assert code == 0, err
    assert document(out)["n"] == 2
    with (workplace / "labels.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["audit"], "either a FILE of pairs, or --question and --answer"),
        (["audit", "--question", "Q?"], "--answer is missing"),
        (["audit", "--question", "  ", "--answer", "A"], "--question is missing"),
        (["audit", "missing.csv"], "missing.csv"),
        (["audit", "a.csv", "--out", "labels.xls"], ".jsonl or .csv"),
        (["evaluate", "data=kqa"], "data.path"),
        (["evaluate", "system=unknown"], "baseline"),
        (["index", "search"], "one query"),
        (["report", "nowhere"], "nowhere"),
    ],
)
def test_bad_usage_is_exit_code_2_and_one_clear_line(workplace, capsys, arguments, said):
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_labels_never_overwrite_the_pairs_they_come_from(mama, workplace):
    file = workplace / "pairs.csv"
    file.write_text(f"id,question,answer\n1,Q?,{ANSWER}\n", encoding="utf-8")
    before = file.read_bytes()
    code, _, err = mama("audit", str(file), "--out", f"{workplace}/./pairs.csv", "system=baseline")
    assert code == 2
    assert "overwrite" in err
    assert file.read_bytes() == before
    assert not mama.requests


@pytest.mark.parametrize(("out", "said"), [("pairs.csv/labels.csv", "another place"), ("folder.csv", "is a folder")])
def test_a_place_where_labels_cannot_go_is_found_before_a_token_is_spent(mama, workplace, out, said):
    file = workplace / "pairs.csv"
    file.write_text(f"id,question,answer\n1,Q?,{ANSWER}\n", encoding="utf-8")
    (workplace / "folder.csv").mkdir()
    code, _, err = mama("audit", str(file), "--out", str(workplace / out), "system=baseline")
    assert code == 2
    assert said in err
    assert not mama.requests


def test_evaluating_pairs_without_gold_is_refused_and_auditing_them_is_not(mama, workplace):
    file = workplace / "pairs.csv"
    file.write_text(f"id,question,answer\n1,Q?,{ANSWER}\n", encoding="utf-8")
    code, _, err = mama("evaluate", "data=table", f"data.path={file}", "system=baseline")
    assert code == 2
    assert "mama audit" in err
    assert not mama.requests
    assert mama("audit", str(file), "system=baseline", "tracking=none")[0] == 0


def test_two_interrupts_of_one_pair_are_said_in_one_line(mama):
    def interrupts(request):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)  # signals that arrive together are one
        os.kill(os.getpid(), signal.SIGINT)
        return default_values(fields_of(request))

    code, _, err = mama("audit", "--question", "Q?", "--answer", ANSWER, "system=baseline", script=interrupts)
    assert code == 1
    assert "mama: interrupted; the pair was not audited" in err
    assert "fault of dspy_mama" not in err


def test_a_store_that_mlflow_refuses_is_found_before_a_token_is_spent(mama):
    code, _, err = mama("evaluate", "data.limit=1", "system=baseline", "tracking.uri=file:./mlruns")
    assert code == 2
    assert "migrate-filestore" in err
    assert not mama.requests


def test_sources_that_no_document_has_are_no_silent_run_without_evidence(mama):
    code, _, err = mama("evaluate", "data.limit=1", "embedder=use", "system.jurisdictions=[XX]")
    assert code == 2
    assert "system.jurisdictions=[XX]" in err
    assert not mama.requests


def test_a_run_that_is_not_tracked_names_no_mlflow_run(mama):
    code, out, _ = mama("evaluate", "data.limit=1", "system=baseline", "tracking=none", "--json")
    assert code == 0
    assert document(out)["mlflow_run"] is None


def test_a_key_that_a_server_repeats_is_shown_nowhere(workplace, capsys, monkeypatch):
    from lm.chat_server import ChatServer, fault

    monkeypatch.setenv("WARD_LM_KEY", "plain-words-0815")
    server = ChatServer(lambda number, body: (401, {}, fault("Incorrect API key provided: plain-words-0815")))
    try:
        server_at = [f"lm.default.api_base={server.address}", "lm.default.api_key_env=WARD_LM_KEY"]
        code = main(["evaluate", "--json", "lm=vllm", "system=baseline", "data.limit=1", *server_at])
    finally:
        server.close()
    out, err = capsys.readouterr()
    assert code == 2
    assert "Incorrect API key" in err
    assert "plain-words" not in out + err
    files = [path for path in workplace.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"plain-words" in path.read_bytes()]


def test_errors_are_json_where_json_was_asked_for(workplace, capsys):
    assert main(["evaluate", "data=kqa", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["exit_code"] == 2


def test_an_unknown_option_is_exit_code_2(workplace, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["evaluate", "--jsno"])
    assert caught.value.code == 2


def test_faulty_rows_are_refused_with_row_and_column_or_left_out_when_asked(mama, workplace):
    file = workplace / "pairs.csv"
    file.write_text(
        f"id,question,answer,medical\n1,Q?,{ANSWER},TRUE\n2,Q?,,FALSE\n3,Q?,{ANSWER},Border\n", encoding="utf-8"
    )
    code, _, err = mama("evaluate", "data=table", f"data.path={file}")
    assert code == 2
    assert "row 3" in err
    assert "row 4" in err
    assert "Border" in err
    code, out, _ = mama("evaluate", "data=table", f"data.path={file}", "--skip-faulty", "--json")
    assert code == 0
    assert document(out)["n"] == 1


def test_report_is_rebuilt_from_records_alone(mama, workplace):
    _, out, _ = mama("evaluate", "data.limit=2", "--json")
    first = document(out)
    (workplace / first["folder"] / "summary.json").unlink()
    (workplace / first["folder"] / "report.html").unlink()
    code, out, _ = mama("report", first["folder"], "--json")
    again = document(out)
    assert code == 0
    assert again["phases"] == first["phases"]
    assert (workplace / first["folder"] / "report.html").exists()


def test_index_is_built_described_and_searched(mama):
    assert mama("index", "build", "embedder=use")[0] == 0
    code, out, _ = mama("index", "build", "embedder=use", "--json")
    assert code == 0
    assert document(out)["added"] == 0
    _, out, _ = mama("index", "info", "embedder=use", "--json")
    assert document(out)["fresh"] is True
    _, out, _ = mama("index", "search", "may a chatbot diagnose?", "embedder=use", "--json")
    assert document(out)["legal"][0]["url"].startswith("https://")
    assert document(out)["way"]["search"] == "hybrid"
    line = "hybrid, fusion=scores (lexical_weight=0.15), centred, glossary=shipped (615 concepts)"
    assert f"way: {line}\n" in mama("index", "search", "may a chatbot diagnose?", "embedder=use")[1]
    out = mama("index", "info", "embedder=use")[1]
    assert re.search(rf"^way +{re.escape(line)}$", out, re.MULTILINE)
    assert "{" not in out
    assert "dense, centred\n" in mama("index", "search", "fever", "embedder=use", "retriever.search=dense")[1]


def test_doctor_says_what_is_there_and_what_is_not(mama):
    code, out, _ = mama("doctor", "--json")
    assert code == 0, out
    assert document(out)["ok"] is True
    code, out, _ = mama("doctor", "data=table", "data.path=missing.csv", "--json")
    assert code == 1
    states = {check["name"]: check for check in document(out)["checks"]}
    assert states["data"]["state"] == "broken"
    assert "missing.csv" in states["data"]["detail"]
    assert states["index"]["state"] == "ok"


def test_a_finished_pair_is_not_asked_for_again_after_a_stop(mama, workplace, monkeypatch):
    from dspy_mama.core.errors import DeclarationError

    calls = {"n": 0}

    def stops_half_way(request):
        calls["n"] += 1
        if calls["n"] > 13:
            raise DeclarationError("the wiring broke")
        return default_values(fields_of(request))

    arguments = ["evaluate", "data.limit=4", "runtime.concurrency=1", "--json"]
    code, _, _ = mama(*arguments, script=stops_half_way)
    assert code != 0
    before = len(mama.requests)
    code, out, _ = mama(*arguments, script=lambda request: default_values(fields_of(request)))
    result = document(out)
    assert code == 0
    assert result["resumed"] == 2
    assert result["n"] == 4
    assert len(mama.requests) - before == 12


def test_no_text_is_kept_where_it_must_not_be(mama, workplace):
    _, out, _ = mama("evaluate", "data.limit=1", "tracking.store_text=false", "--json")
    record = json.loads((workplace / document(out)["folder"] / "records.jsonl").read_text(encoding="utf-8"))
    assert "question" not in record
    assert "answer" not in record


def quoting(request):
    values = default_values(fields_of(request)).items()
    return {
        name: "it says qqtext" if isinstance(value, str) and name != "specialty" else value for name, value in values
    }


def unreadable(request):
    return f"I think: {text_of(request.messages[-1])}"


@pytest.mark.parametrize("script", [quoting, unreadable])
def test_no_file_of_a_run_quotes_a_text_that_must_not_be_kept(mama, workplace, script):
    (workplace / "pairs.csv").write_text("id,question,answer\na,May I take qqtext?,Take aatext.\n", encoding="utf-8")
    keep = ("tracking.store_text=false", "tracking.traces=1.0")
    mama("audit", "pairs.csv", "--out", "labels.csv", *keep, script=script)
    files = [file for file in (workplace / "mlruns").rglob("*") if file.is_file()]
    assert files
    for file in files:
        content = file.read_bytes()
        assert b"qqtext" not in content, file
        assert b"aatext" not in content, file


def test_a_reader_that_closes_the_pipe_early_sees_no_traceback(workplace):
    import subprocess
    import sys

    command = f"{sys.executable} -m dspy_mama.cli index search fever embedder=use --json retriever.path={workplace}/i"
    subprocess.run(command.replace("search fever", "build"), shell=True, check=True, capture_output=True, timeout=200)
    done = subprocess.run(f"{command} | head -c 10", shell=True, capture_output=True, text=True, timeout=200)
    assert done.stdout == '{"medical"'
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    text = command.replace(" --json", "").replace(" -m ", " -u -m ")  # each line is written at once, inside the verb
    done = subprocess.run(f"{text} | true", shell=True, capture_output=True, text=True, timeout=200)
    assert "BrokenPipe" not in done.stderr
    assert "fault of dspy_mama" not in done.stderr
