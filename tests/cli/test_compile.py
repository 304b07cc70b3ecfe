import json

import pytest
from dspy.utils.exceptions import LMAuthError

from cli.compile_cli import gold_file, learns_from_demos

OPTIONS = (
    "system=baseline", "ablation=ma_without_ma2", "data=table", "optimizer.demos=2", "optimizer.candidates=1",
    "optimizer.threads=2", "experiment.resamples=100", "runtime.progress=false",
)  # fmt: skip


@pytest.fixture
def table(workplace):
    return gold_file(workplace / "gold.csv")


def columns():
    return [f"data.columns.{d}={d}" for d in ("medical", "ethical", "legal")]


def test_a_compile_run_leaves_five_files_a_diff_and_an_mlflow_run_with_candidates(mama, table, workplace):
    code, out, err = mama(
        "compile", "optimizer=bootstrap", f"data.path={table}", *columns(), *OPTIONS, "--json", script=learns_from_demos
    )
    assert code == 0, err
    document = json.loads(out)
    assert document["kept"] is True
    assert document["test"]["before"]["value"] < 0.5 < 0.9 < document["test"]["after"]["value"]
    assert document["problems"] == []
    folder = workplace / document["folder"]
    for name in ("spec.json", "records.jsonl", "summary.json", "program.json", "manifest.json"):
        assert (folder / name).is_file()
    for name in ("splits.json", "diff.txt", "comparison.html", "report.html", "uncompiled.jsonl"):
        assert (folder / name).is_file()
    assert not (folder / ".calls.jsonl").exists()

    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{workplace}/mlruns/mlflow.db")
    parent = client.get_run(document["mlflow_run"])
    children = client.search_runs([parent.info.experiment_id], f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'")
    assert {run.info.run_name for run in children} == {one["name"] for one in document["candidates"]}
    for child in children:
        number = int(child.data.tags["candidate"])
        files = {file.path for file in client.list_artifacts(child.info.run_id)}
        assert files == {f"{number:02d}.json", f"{number:02d}.diff.txt"}
        assert "validation/average_macro_f1" in child.data.metrics
    assert [run.info.run_name for run in children if run.data.tags["chosen"] == "true"] == [document["chosen"]]
    assert document["reason"] in parent.data.tags["mlflow.note.content"]
    assert parent.data.metrics["compile/test_difference"] == document["test"]["difference"]["value"]
    assert {"diff.txt", "program.json", "candidates"} <= {f.path for f in client.list_artifacts(parent.info.run_id)}

    code, out, _ = mama("compile", "show", str(folder))
    assert code == 0
    assert "[demonstration 1]" in out

    # The report made anew says the same, to the letter: scores, compilation and both pages.
    pages = {name: (folder / name).read_text(encoding="utf-8") for name in ("report.html", "comparison.html")}
    assert "Compiled with bootstrap against uncompiled" in pages["report.html"]
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert {name: value for name, value in document.items() if name in summary["compile"]} == summary["compile"]
    for page in pages:
        (folder / page).unlink()
    code, out, _ = mama("report", str(folder), "--json")
    assert code == 0
    assert {k: v for k, v in json.loads(out).items() if k != "report"} == summary
    assert {name: (folder / name).read_text(encoding="utf-8") for name in pages} == pages


def test_a_report_of_other_records_is_another_one_and_a_run_cut_short_is_told_how_to_go_on(mama, table, workplace):
    words = ("compile", "optimizer=labelled", f"data.path={table}", *columns(), *OPTIONS, "tracking=none", "--json")
    code, out, err = mama(*words, script=learns_from_demos)
    assert code == 0, err
    assert err == ""  # no bars, logs and texts of DSPy's own
    document = json.loads(out)
    folder = workplace / document["folder"]
    rows = [json.loads(line) for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["verdicts"]["legal"] = "undetermined"
        row["phases"][row["final_phase"]]["legal"].update(outcome="refused", risk=None)
    (folder / "records.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    code, out, err = mama("report", str(folder), "--json")
    assert code == 0, err
    found = json.loads(out)["compile"]
    assert found["test"]["after"]["value"] < document["test"]["after"]["value"]
    assert found["test"]["before"] == document["test"]["before"]
    assert found["candidates"] == document["candidates"]
    (folder / "records.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows[1:]), encoding="utf-8")
    assert "not about the same pairs" in mama("report", str(folder))[2]
    (folder / "compile.json").unlink()
    code, _, err = mama("report", str(folder))
    assert code == 2
    assert "the command that began it goes on with it" in err


def test_the_dry_run_asks_no_lm(mama, table):
    code, out, err = mama(
        "compile", "optimizer=gepa", f"data.path={table}", *columns(), *OPTIONS, "--dry-run", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["total"]["calls"]["expected"] > 0
    steps = {row["step"] for row in json.loads(out)["rows"]}
    code, out, err = mama(
        "compile", "optimizer=gepa", "optimizer.split.folds=2", f"data.path={table}", *columns(), *OPTIONS, "--dry-run",
        "--json",
    )  # fmt: skip
    assert code == 0, err
    folds = {f"{part}: {step}" for part in ("fold 1", "fold 2", "all pairs") for step in steps}
    found = {row["step"] for row in json.loads(out)["rows"]}
    assert found == {step for step in folds if step != "all pairs: measure before and after on test"}
    assert mama.requests == []


def test_the_dry_run_needs_no_key_of_any_lm_or_embedder_and_the_run_does(mama, table, monkeypatch, workplace):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    writer = [f"optimizer.{role}.{part}" for role in ("reflection", "teacher") for part in (
        "model=openai/gpt-4o-mini", "api_key_env=OPENAI_API_KEY", "price_input=1.0", "price_output=2.0")]  # fmt: skip
    common = ("compile", "optimizer=staged_mipro", f"data.path={table}", *columns(), "lm=openai", *writer)
    for more in ((), ("system=rag", "ablation=full", "embedder=openai")):
        code, out, err = mama(*common, "data=table", *more, "--dry-run", "--json")
        assert code == 0, err
        total = json.loads(out)["total"]
        assert 0 < total["cost"]["expected"] < total["cost"]["at_most"]
        assert not list(workplace.glob("mlruns/runs/*"))
    code, _, err = mama(*common, "data=table", "system=baseline", "ablation=ma_without_ma2")
    assert code == 2
    assert "OPENAI_API_KEY is not set" in err


def test_where_an_index_would_be_searched_by_a_server_the_dry_run_counts_full_evidence(mama, table, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    sent = {}
    for tokens in (400, 1200):
        code, out, err = mama(
            "compile", "optimizer=token_thresholds", "data=table", f"data.path={table}", *columns(), "lm=openai",
            "system=rag", "ablation=full", "embedder=openai", f"retriever.evidence_tokens={tokens}", "--dry-run",
            "--json",
        )  # fmt: skip
        assert code == 0, err
        row = next(row for row in json.loads(out)["rows"] if row["role"] == "verifier")
        sent[tokens] = row["prompt_tokens"]["expected"] / row["calls"]["expected"]
    assert 0.9 * 800 < sent[1200] - sent[400] < 1.1 * 800


def test_without_an_optimizer_it_says_which_there_are(mama):
    code, _, err = mama("compile")
    assert code == 2
    assert "token_thresholds" in err


def test_demonstrations_are_refused_before_the_first_token_where_texts_may_not_be_kept(mama, table):
    code, _, err = mama("compile", "optimizer=labelled", f"data.path={table}", "tracking.store_text=false")
    assert code == 2
    assert "store_text" in err
    assert mama.requests == []


def test_a_name_in_the_registry_is_refused_where_there_is_none(mama, table):
    words = ("compile", "optimizer=gepa", f"data.path={table}", "tracking=none", "optimizer.register=audit")
    code, _, err = mama(*words)
    assert code == 2
    assert "tracking=mlflow" in err
    assert mama.requests == []


def test_records_of_a_start_that_was_cut_short_are_not_mixed_with_those_of_the_next(mama, table, workplace):
    words = ("compile", "optimizer=labelled", f"data.path={table}", *columns(), *OPTIONS, "tracking=none", "--json")
    code, out, err = mama(*words, script=learns_from_demos)
    assert code == 0, err
    folder = workplace / json.loads(out)["folder"]
    whole = (folder / "records.jsonl").read_text(encoding="utf-8")
    stale = json.loads(whole.splitlines()[0])
    stale |= {"id": "other", "key": "other", "reason": "of a program that is not kept"}
    (folder / "records.jsonl").write_text(f"{json.dumps(stale)}\n", encoding="utf-8")
    (folder / "summary.json").unlink()  # as a kill before the last file leaves it
    code, out, err = mama(*words)
    assert code == 0, err
    assert workplace / json.loads(out)["folder"] == folder
    assert [json.loads(line)["id"] for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()] == [
        json.loads(line)["id"] for line in whole.splitlines()
    ]


def test_a_second_look_at_the_test_pairs_is_told(mama, table):
    words = ("compile", f"data.path={table}", *columns(), *OPTIONS, "tracking=none")
    first = mama(*words, "optimizer=labelled", script=learns_from_demos)
    second = mama(*words, "optimizer=labelled", "optimizer.seed=1", script=learns_from_demos)
    assert "ATTENTION" not in first[2]
    assert "looked at 1 time(s) before" in second[2]


def test_a_run_that_broke_off_is_gone_on_with_and_no_reply_is_paid_for_twice(mama, table):
    words = ("compile", "optimizer=bootstrap", f"data.path={table}", *columns(), *OPTIONS, "tracking=none", "--json")
    paid = []

    refused = []

    def breaks_off(request):
        if len(paid) >= 60:
            refused.append(request)
            return LMAuthError("the key has run out")
        paid.append(request)
        return learns_from_demos(request)

    code, _, err = mama(*words, script=breaks_off)
    assert code == 2
    assert "cannot be used" in err
    assert len(refused) <= 8

    first = len(paid)

    def goes_on(request):
        paid.append(request)
        return learns_from_demos(request)

    code, out, err = mama(*words, script=goes_on)
    assert code == 0, err
    document = json.loads(out)
    asked = [(str(request.system), str(request.messages)) for request in paid]
    assert len(asked) == len(set(asked))
    assert len(paid) <= document["spent"]["calls"] <= len(paid) + len(refused)
    assert document["spent"]["from_journal"] >= first


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the program catches it."""


@pytest.mark.parametrize("folds", [0, 2])
def test_a_kill_after_the_search_and_before_the_last_file_costs_no_call(mama, table, workplace, monkeypatch, folds):
    from dspy_mama.wiring import compile as wiring

    words = ("compile", "optimizer=labelled", f"optimizer.split.folds={folds}", f"data.path={table}", *columns(),
             *OPTIONS, "tracking=none", "--json")  # fmt: skip

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(wiring, "write_pictures", killed)
        with pytest.raises(Killed):
            mama(*words, script=learns_from_demos)
    made = len(mama.requests)
    assert made
    code, out, err = mama(*words)
    assert code == 0, err
    assert len(mama.requests) == made
    assert not list((workplace / json.loads(out)["folder"]).glob(f"{wiring.JOURNAL}*"))


def test_nested_folds_test_every_pair_and_give_one_program(mama, table, workplace):
    words = ("compile", "optimizer=labelled", "optimizer.split.folds=2", f"data.path={table}", *columns(), *OPTIONS)
    code, out, err = mama(*words, "tracking=none", "--json", script=learns_from_demos)
    assert code == 0, err
    document = json.loads(out)
    assert document["test"]["before"]["n"] == 30
    assert len(document["folds"]) == 2
    records = (workplace / document["folder"] / "records.jsonl").read_text().splitlines()
    assert len(records) == 30


def test_where_texts_may_not_be_stored_no_file_holds_any(mama, table, workplace):
    words = ("compile", "optimizer=token_thresholds", f"data.path={table}", *columns(), *OPTIONS, "tracking=none")
    code, out, err = mama(*words, "tracking.store_text=false", "--json", script=learns_from_demos)
    assert code == 0, err
    folder = workplace / json.loads(out)["folder"]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 8
    made = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["compile"]
    code, out, err = mama("report", str(folder), "--json")
    assert code == 0, err
    assert json.loads(out)["compile"] == made
    assert not [path.name for path in files if b"tablets" in path.read_bytes()]
