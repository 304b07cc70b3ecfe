import socket
import threading

import mlflow
import pytest
from mlflow import MlflowClient
from tests.tracking.samples import record

from dspy_mama.core.ports import Tracker
from dspy_mama.settings import Settings, TrackingSettings, to_mapping
from dspy_mama.tracking import MlflowTracker, NullTracker, RunStore
from dspy_mama.tracking.mlflow_traces import is_sampled
from mlflow_server import mlflow_server

SECRET = "Zq8vT1-opaque-value"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """One database for all tests: its making takes a second or two."""
    return tmp_path_factory.mktemp("with space あ")


def tracker(root, **more):
    return MlflowTracker(TrackingSettings(root=str(root), **more), data="sample")


def run_folder(tmp_path):
    with RunStore.create(tmp_path, {"name": "x"}) as store:
        store.append(record())
        for part in ("program", "manifest", "summary"):
            store.write(part, {"n": 1})
    (store.folder / "report.html").write_text("<p>")
    (store.folder / "figures").mkdir()
    (store.folder / "figures" / "f1.png").write_bytes(b"png")
    return store.folder


def artifacts(client, run_id, path=None):
    found = client.list_artifacts(run_id, path)
    return {f.path for f in found if not f.is_dir}.union(
        *(artifacts(client, run_id, f.path) for f in found if f.is_dir)
    )


def log_everything(one, tmp_path):
    run_id = one.start("run-1", {**to_mapping(Settings()), "prompt": "x" * 7000}, {"system": "rag", "note": "y" * 9000})
    one.log_metrics({"MA+MPA": 0.5, "recall@5": 1.0, "f1(medical)": 0.25, "auc": None, "consensus/legal/macro_f1": 0.1})
    one.log_artifacts(str(run_folder(tmp_path)))
    one.log_trace(record("t1"))
    one.finish("FINISHED")
    return run_id


def check_everything(client, run_id):
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert run.data.metrics == {
        "MA_plus_MPA": 0.5,
        "recall_at_5": 1.0,
        "f1_medical": 0.25,
        "consensus/legal/macro_f1": 0.1,
    }
    assert run.data.params["system.name"] == "rag"
    assert run.data.params["prompt"].startswith("sha256:")
    assert run.data.tags["system"] == "rag"
    assert run.data.tags["mama.metrics_skipped"] == "1"
    assert artifacts(client, run_id) == {
        *(
            "spec.json",
            "records.jsonl",
            "summary.json",
            "program.json",
            "manifest.json",
            "report.html",
            "figures/f1.png",
        ),
        *("long_values/prompt.txt", "long_values/note.txt", "metric_names.json", "metrics_skipped.json"),
    }
    traces = client.search_traces(locations=[run.info.experiment_id], run_id=run_id)
    assert [s.name for s in traces[0].data.spans] == ["audit", "routing", "initial", "consensus"]
    assert traces[0].data.spans[0].inputs["question"] == "腰が痛いのですが"
    assert traces[0].data.spans[3].outputs["legal"]["outcome"] == "scored"
    assert {s.parent_id for s in traces[0].data.spans[1:]} == {traces[0].data.spans[0].span_id}
    assert traces[0].info.token_usage == {"input_tokens": 20, "output_tokens": 8, "total_tokens": 28}


def test_a_run_in_the_local_store_holds_everything(root, tmp_path):
    before = mlflow.get_tracking_uri()
    one = tracker(root, traces=1.0)

    run_id = log_everything(one, tmp_path)

    assert one.problems == ()
    assert one.skipped == ("auc",)
    client = MlflowClient(tracking_uri=one.location.uri)
    check_everything(client, run_id)
    experiment = client.get_experiment_by_name("dspy_mama/sample")
    assert experiment.artifact_location == (root / "artifacts").as_uri()
    assert (root / "artifacts" / run_id / "artifacts" / "figures" / "f1.png").exists()
    assert mlflow.active_run() is None
    assert mlflow.get_tracking_uri() == before


def test_a_resumed_run_goes_on_under_its_mlflow_id(root):
    first = tracker(root)
    run_id = first.start("run-2", {"runtime": {"concurrency": 8}}, {})
    first.finish("KILLED")
    second = tracker(root)

    assert second.start("run-2", {"runtime": {"concurrency": 2}, "new": 1}, {}) == run_id
    second.finish("FINISHED")

    run = MlflowClient(tracking_uri=second.location.uri).get_run(run_id)
    assert second.problems == ()
    assert run.data.params == {"runtime.concurrency": "8", "new": "1"}
    assert run.info.status == "FINISHED"


def test_no_key_reaches_the_store(root, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    one = tracker(root, traces=1.0)
    one.start("run-3", {"base": f"http://u:{SECRET}@h", "long": SECRET * 60}, {"tag": SECRET})
    one.log_trace(record("t3", question=f"my key is {SECRET}", api_key=SECRET))
    one.log_artifacts(str(tmp_path / f"no-{SECRET}"))
    one.finish("FINISHED")

    assert len(one.problems) == 1
    assert "opaque" not in one.problems[0]
    assert all(b"opaque-value" not in p.read_bytes() for p in root.rglob("*") if p.is_file())


def test_sixteen_threads_trace_all_their_records(root):
    one = tracker(root, traces=1.0)
    run_id = one.start("run-4", {}, {})
    threads = [
        threading.Thread(target=lambda n=n: [one.log_trace(record(f"{n}-{i}")) for i in range(4)]) for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one.finish("FINISHED")

    client = MlflowClient(tracking_uri=one.location.uri)
    traces = client.search_traces(locations=[one.experiment_id], run_id=run_id, max_results=500, include_spans=False)
    assert one.problems == ()
    assert len({t.info.client_request_id for t in traces}) == 64


def test_the_traced_share_is_drawn_by_key():
    drawn = [is_sampled(str(n), 0.2) for n in range(2000)]

    assert drawn == [is_sampled(str(n), 0.2) for n in range(2000)]
    assert 300 < sum(drawn) < 500
    assert all(is_sampled(str(n), 1.0) for n in range(100))
    assert not any(is_sampled(str(n), 0.0) for n in range(100))


def test_a_failure_to_log_is_collected_warned_of_once_and_fails_nothing(root, tmp_path, caplog):
    one = tracker(root)
    one.start("run-5", {}, {})
    one.log_artifacts(str(tmp_path / "not-there"))
    one.log_artifacts(str(tmp_path / "not-there"))
    one.log_metrics({"a": 1.0})
    one.finish("no such status")

    assert [p.split(":")[0] for p in one.problems] == ["artifacts", "artifacts", "the end of the run"]
    assert len([r for r in caplog.records if "could not log" in r.message]) == 1


def test_a_store_that_cannot_be_opened_is_let_go_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    one = tracker(tmp_path / "file")

    assert one.start("run", {}, {}) == ""
    one.log_metrics({"a": 1.0})
    one.finish("FINISHED")

    assert len(one.problems) == 1


def test_a_deleted_experiment_is_named(root):
    one = tracker(root, experiment="gone")
    one.start("run-6", {}, {})
    MlflowClient(tracking_uri=one.location.uri).delete_experiment(one.experiment_id)
    two = tracker(root, experiment="gone")

    assert two.start("run-7", {}, {}) == ""
    assert "'gone' was deleted: restore it" in two.problems[0]


def test_an_experiment_whose_artifacts_lie_elsewhere_is_pointed_out(root, tmp_path):
    uri = tracker(root).location.uri
    one = MlflowTracker(TrackingSettings(root=str(tmp_path), uri=uri, experiment="moved"))
    one.start("run-8", {}, {})
    two = MlflowTracker(TrackingSettings(root=str(tmp_path / "new"), uri=uri, experiment="moved"))

    assert two.start("run-9", {}, {})
    assert "keeps its artifacts at" in two.problems[0]


@pytest.fixture
def server(tmp_path):
    with mlflow_server(tmp_path) as address:
        yield address


@pytest.mark.slow
def test_a_remote_server_holds_everything(server, tmp_path):
    one = tracker(tmp_path / "local", uri=server, traces=1.0)

    run_id = log_everything(one, tmp_path)

    assert one.problems == ()
    check_everything(MlflowClient(tracking_uri=server), run_id)
    assert not (tmp_path / "local").exists()


def test_a_server_that_is_gone_costs_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        one = tracker(tmp_path, uri=f"http://127.0.0.1:{closed.getsockname()[1]}")
        assert one.start("run", {}, {}) == ""

    assert "opening the store" in one.problems[0]


def test_the_null_tracker_keeps_nothing_and_both_are_trackers(root):
    null = NullTracker()

    assert null.start("run", {}, {}) == ""
    null.log_metrics({"a": None})
    null.finish("FINISHED")
    assert null.problems == ()
    assert isinstance(null, Tracker)
    assert isinstance(tracker(root), Tracker)
