"""The whole product on real parts: real LM, real Chroma, real MLflow, bundled pairs, in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.embedded, pytest.mark.slow, pytest.mark.timeout(900)]

COMMON = ["lm.default.threads=1", "runtime.progress=true", "--json"]
FILES = ["manifest.json", "program.json", "records.jsonl", "spec.json", "summary.json"]


def command(*arguments, folder):
    return [sys.executable, "-m", "dspy_mama.cli", *arguments, f"retriever.path={folder / 'index'}", *COMMON]


def run(*arguments, folder, log):
    environment = {**os.environ, "MAMA_NETWORK_LOG": str(log)}
    done = subprocess.run(
        command(*arguments, folder=folder), cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    return done, json.loads(done.stdout) if done.stdout.strip() else {}


def records_of(folder, result):
    lines = (folder / result["folder"] / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """One run over two bundled pairs, an English file's rows, and the log of connections beyond loopback."""
    folder = tmp_path_factory.mktemp("audited")
    log = folder / "network.log"
    done, result = run("evaluate", "data.ids=[s2,s18]", folder=folder, log=log)
    return folder, log, done, result


def test_the_run_ends_well_and_prints_one_json_document(audited):
    _, _, done, result = audited
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.strip().splitlines()) == 1
    assert result["n"] == 2


def test_every_phase_gave_labels_with_probabilities(audited):
    folder, _, _, result = audited
    verdicts = [
        verdict
        for record in records_of(folder, result)
        for phase in record["phases"].values()
        for verdict in phase.values()
    ]
    assert len(verdicts) == 2 * 3 * 3
    assert sum(verdict["outcome"] != "scored" for verdict in verdicts) <= 1
    scored = [verdict for verdict in verdicts if verdict["outcome"] == "scored"]
    assert all(verdict["probability_source"] == "token" for verdict in scored)
    assert all(0 < verdict["probability"] < 1 for verdict in scored)


def test_citations_are_passages_of_the_index(audited):
    from dspy_mama.retrieval.chroma import open_store
    from dspy_mama.settings import RetrieverSettings

    folder, _, _, result = audited
    spec = json.loads((folder / result["folder"] / "spec.json").read_text(encoding="utf-8"))
    with open_store(RetrieverSettings(path=str(folder / "index")), spec["evidence"]["collection"]) as store:
        assert store.exists()
        known = {passage.id for passage in store.load()[0]}
    for record in records_of(folder, result):
        for verdict in record["phases"]["verification"].values():
            shown = {passage["id"] for passage in verdict["passages"]}
            assert shown
            assert shown <= known
            assert set(verdict["citations"]) <= shown


def test_all_five_files_and_the_report_are_there(audited):
    folder, _, _, result = audited
    names = {file.name for file in (folder / result["folder"]).iterdir()}
    assert {*FILES, "report.html"} <= names


def test_the_manifest_names_model_data_and_versions_but_no_secret_path(audited):
    folder, _, _, result = audited
    text = (folder / result["folder"] / "manifest.json").read_text(encoding="utf-8")
    manifest = json.loads(text)
    assert manifest["models"]["judge"]["sha256"].startswith("b179c952")
    assert manifest["packages"]["dspy"]
    assert "127.0.0.1" not in text


def test_the_server_counted_six_requests_a_pair_and_reused_its_prefixes(audited):
    _, _, _, result = audited
    usage = result["usage"]
    calls = sum(phase["calls"] for name, phase in usage.items() if name != "total")
    assert result["server_requests"] == calls
    reasks = sum(phase["reasks"] for name, phase in usage.items() if name != "total")
    assert calls == 12 + reasks
    assert usage["total"]["cached_tokens"] > 0


def test_mlflow_has_the_run(audited):
    from mlflow.tracking import MlflowClient

    folder, _, _, result = audited
    found = MlflowClient(f"sqlite:///{folder / 'mlruns' / 'mlflow.db'}").get_run(result["mlflow_run"])
    assert found.info.status == "FINISHED"
    assert found.data.tags["lm"] == "embedded"


def test_no_connection_beyond_loopback_was_tried(audited):
    _, log, _, _ = audited
    assert not log.exists() or log.read_text(encoding="utf-8") == ""


def test_the_guard_notices_a_connection_beyond_loopback(tmp_path):
    log = tmp_path / "network.log"
    code = "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), timeout=1)\nexcept OSError:\n    pass"
    environment = {**os.environ, "MAMA_NETWORK_LOG": str(log)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    assert "192.0.2.1" in log.read_text(encoding="utf-8")


def test_a_killed_run_goes_on_without_repeating_a_finished_pair(tmp_path):
    arguments = ("evaluate", "data.ids=[s2,s18,s30]", "runtime.concurrency=1", "system=baseline")
    environment = {**os.environ, "MAMA_NETWORK_LOG": str(tmp_path / "network.log")}
    process = subprocess.Popen(
        command(*arguments, folder=tmp_path), cwd=tmp_path, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not (written := finished(tmp_path)) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    assert written == ["s2"]
    done, result = run(*arguments, folder=tmp_path, log=tmp_path / "network.log")
    assert done.returncode == 0, done.stderr[-2000:]
    assert result["resumed"] == 1
    records = records_of(tmp_path, result)
    assert sorted(record["id"] for record in records) == ["s18", "s2", "s30"]
    new = [record for record in records if record["id"] != "s2"]
    assert result["server_requests"] == sum(usage["calls"] for record in new for usage in record["usage"].values())


def finished(folder):
    found = list(folder.glob("mlruns/runs/*/records.jsonl"))
    lines = found[0].read_text(encoding="utf-8").splitlines(keepends=True) if found else []
    return [json.loads(line)["id"] for line in lines if line.endswith("\n")]
