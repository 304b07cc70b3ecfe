"""Programs in MLflow: logged without a pickle, loaded without one, and served by MLflow's own server."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from mlflow import MlflowClient

from dspy_mama import RiskAuditor, load_program
from dspy_mama.core.errors import DeclarationError
from dspy_mama.optimize import program_state
from dspy_mama.settings import LMSettings, LMSpec, Settings, SystemSettings, TrackingSettings
from dspy_mama.tracking import MlflowTracker
from dspy_mama.tracking.mlflow_store import locate
from dspy_mama.wiring.serving import log_model
from lm.chat_server import ChatServer, completion, fault
from mlflow_server import mlflow_server
from model_server import free_port, model_server, serve_command
from scripted import default_values, scripted_lm

PAIR = {"question": "May I double the dose?", "answer": "Yes, do."}
HAND = "HAND-WRITTEN-INSTRUCTION"


def reply(number, body):
    """Answers as the texts say: risky, refused key, or something that cannot be read."""
    text = json.dumps(body["messages"])
    if "WRONG-KEY" in text:
        return 401, {}, fault("Incorrect API key provided")
    if "UNREADABLE" in text and "reception of a hospital" not in text:
        return 200, {}, completion("I would rather not put this into JSON")
    schema = body["response_format"]["json_schema"]["schema"]
    return 200, {}, completion(default_values(list(schema["properties"]), risk=HAND in text))


@pytest.fixture(scope="module")
def chat():
    server = ChatServer(reply)
    yield server
    server.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("mlruns")


@pytest.fixture(scope="module")
def settings(chat, root):
    spec = LMSpec("openai/served-1", api_base=chat.address, num_retries=0, logprobs=False, api_key_env="MAMA_TEST_KEY")
    return Settings(
        system=SystemSettings("baseline", context="none"),
        lm=LMSettings("served", spec),
        tracking=TrackingSettings(root=str(root)),
    )


def compiled():
    """A program whose prompts differ from the library's, as an optimiser leaves it."""
    program = RiskAuditor.from_preset(system="baseline", thresholds={"legal": 0.4})
    for _, predictor in program.named_predictors():
        predictor.signature = predictor.signature.with_instructions(f"{predictor.signature.instructions}\n{HAND}")
    return program


@pytest.fixture(scope="module")
def logged(settings, chat):
    tracker = MlflowTracker(settings.tracking, "sample")
    run_id = tracker.start("compile 1", {"a": 1}, {})
    tracker.finish("FINISHED")
    found = log_model(settings, program_state(compiled()), run_id, registered_name="auditor")
    assert not chat.bodies, "logging a model must ask no LM"
    return run_id, found


def client(settings):
    uri = locate(settings.tracking.uri, settings.tracking.root).uri
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def store(settings):
    return locate(settings.tracking.uri, settings.tracking.root).uri


def test_the_model_has_signature_example_and_lineage_and_no_pickle(logged, settings):
    run_id, found = logged
    model = client(settings).get_logged_model(found.model_id)
    assert (model.status, model.name, model.source_run_id) == ("READY", "program", run_id)
    assert client(settings).get_model_version("auditor", "1").run_id == run_id
    folder = model.artifact_location.removeprefix("file://")
    files = {os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names}
    assert {"MLmodel", "data/program/program.json", "data/program/serving.json", "input_example.json"} <= files
    assert not [name for name in files if name.endswith((".pkl", ".pickle", ".py", ".joblib"))]
    for name in files:
        with open(os.path.join(folder, name), "rb") as stream:
            start = stream.read(2)
        assert start[:1] != b"\x80", f"{name} is a pickle"
    with open(os.path.join(folder, "MLmodel"), encoding="utf-8") as stream:
        text = stream.read()
    assert all(word in text for word in ("question", "medical_probability", "needs_review", "loader_module"))
    assert "cloudpickle" not in text


@pytest.mark.parametrize("address", ["models:/auditor/1", "models:/auditor/latest", "runs:/{run}/program", "{model}"])
def test_a_program_comes_back_from_every_address_in_mlflow(logged, settings, address):
    run_id, found = logged
    uri = address.format(run=run_id, model=f"models:/{found.model_id}")
    lms = {"default": scripted_lm()}
    program = load_program(uri, lms=lms, tracking=settings.tracking)
    assert program.thresholds == {"legal": 0.4}
    assert all(HAND in predictor.signature.instructions for _, predictor in program.named_predictors())


def test_an_alias_and_the_environment_name_the_store_as_well(logged, settings, monkeypatch):
    client(settings).set_registered_model_alias("auditor", "best", "1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store(settings))
    assert load_program("models:/auditor@best", lms={"default": scripted_lm()}).thresholds == {"legal": 0.4}


@pytest.mark.slow
def test_a_tracking_server_keeps_registers_and_returns_programs(settings, tmp_path):
    with mlflow_server(tmp_path) as address:
        remote = replace(settings, tracking=TrackingSettings(root=str(tmp_path), uri=address))
        tracker = MlflowTracker(remote.tracking, "sample")
        run_id = tracker.start("compile 1", {}, {})
        first = log_model(remote, program_state(compiled()), run_id, registered_name="auditor")
        second = log_model(remote, program_state(compiled()), run_id, registered_name="auditor")
        tracker.finish("FINISHED")
        assert (first.uri, second.uri) == ("models:/auditor/1", "models:/auditor/2")
        for uri in (second.uri, f"models:/{first.model_id}", f"runs:/{run_id}/program"):
            program = load_program(uri, lms={"default": scripted_lm()}, tracking=remote.tracking)
            assert program.thresholds == {"legal": 0.4}


@pytest.mark.parametrize(
    "uri", ["models:/nobody/1", "models:/auditor/9", "models:/a/b/c/d", "runs:/0123/program", "models:/nobody/latest"]
)
def test_an_address_without_a_model_is_refused_by_name(logged, settings, uri):
    with pytest.raises(DeclarationError, match=uri):
        load_program(uri, tracking=settings.tracking)


WATCHED = """
import sys
seen = []
sys.addaudithook(lambda event, args: seen.append(args) if event == "pickle.find_class" else None)
from dspy_mama import load_program
import dspy_mama.wiring.serving  # the modules first: some library may unpickle its own tables
import mlflow.pyfunc
seen.clear()
load_program(sys.argv[1], on_mismatch="warn", allow_public=True)
model = mlflow.pyfunc.load_model(sys.argv[1])
assert not seen, seen
print("loaded")
"""


def test_loading_unpickles_nothing(logged, settings):
    environment = {**os.environ, "MLFLOW_TRACKING_URI": store(settings), "MAMA_TEST_KEY": "k"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, "models:/auditor/1"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "loaded" in done.stdout


def test_the_real_server_answers_with_verdicts_and_says_what_failed(logged, settings, tmp_path, chat):
    with model_server("models:/auditor/1", store(settings), tmp_path, MAMA_TEST_KEY="k") as served:
        rows = [PAIR, {**PAIR, "answer": "UNREADABLE"}, {**PAIR, "answer": " "}]
        status, document = served.ask({"dataframe_records": rows})
        assert status == 200
        good, unread, empty = document["predictions"]
        assert good == {
            **{f"{d}_verdict": "risky" for d in ("medical", "ethical", "legal")},
            **{f"{d}_risk": True for d in ("medical", "ethical", "legal")},
            **{f"{d}_probability": None for d in ("medical", "ethical", "legal")},
            **{f"{d}_reason": f"text of {d}_reason" for d in ("medical", "ethical", "legal")},
            **{f"{d}_error": None for d in ("medical", "ethical", "legal")},
            "needs_review": False,
            "error": None,
        }
        assert (unread["medical_verdict"], unread["medical_risk"], unread["needs_review"]) == (
            "undetermined",
            None,
            True,
        )
        assert unread["legal_error"].startswith("parse: ")
        assert (empty["ethical_verdict"], empty["needs_review"]) == ("undetermined", True)
        assert empty["error"] == "invalid_input: answer must be given"
        status, document = served.ask({"dataframe_records": [{"question": "only one column"}]})
        assert status == 400
        assert "answer" in document["message"]
        status, document = served.ask({"dataframe_records": [{**PAIR, "answer": "WRONG-KEY"}]})
        assert status == 500
        assert "Incorrect API key" in document["message"]
    log = served.log.read_text()
    assert "Bearer k" not in log
    assert PAIR["question"] not in log, "texts of patients stay out of the server's log"


def test_a_missing_key_stops_the_server_at_once_and_is_named(logged, settings, tmp_path):
    environment = {**os.environ, "MLFLOW_TRACKING_URI": store(settings)}
    environment.pop("MAMA_TEST_KEY", None)
    environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), environment["PATH"]])
    done = subprocess.run(
        serve_command("models:/auditor/1", free_port()),
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode != 0
    assert "the environment variable MAMA_TEST_KEY is not set" in done.stdout + done.stderr


def test_a_local_program_is_not_logged_to_be_served_by_a_public_lm(settings, logged):
    run_id, _ = logged
    document = program_state(compiled())
    document["lms"] = {"judge": {"model": "embedded/x", "host": "local"}}
    public = Settings(
        system=settings.system, lm=LMSettings("openai", LMSpec("openai/gpt-4o")), tracking=settings.tracking
    )
    with pytest.raises(DeclarationError, match="made with a local LM for the role 'judge'"):
        log_model(public, document, run_id)


def test_what_cannot_be_served_is_refused_before_it_is_logged(settings, logged):
    from dspy_mama.systems.mac import DiagnosisPanel

    with pytest.raises(DeclarationError, match="a diagnosis_panel cannot be served"):
        log_model(settings, program_state(DiagnosisPanel(doctors=2)), logged[0])


def test_demonstrations_with_texts_stay_out_of_mlflow_where_texts_do(settings, logged):
    run_id, _ = logged
    program = compiled()
    dict(program.named_predictors())["initial.assess"].demos = [{**PAIR, "medical_risk": True}]
    private = Settings(
        system=settings.system,
        lm=settings.lm,
        tracking=TrackingSettings(root=settings.tracking.root, store_text=False),
    )
    with pytest.raises(DeclarationError, match="store_text=false"):
        log_model(private, program_state(program), run_id)


def test_a_password_in_an_address_is_refused(settings, logged):
    run_id, _ = logged
    document = {**program_state(compiled()), "lms": {"judge": {"model": "m", "host": "public"}}}
    spec = LMSpec("openai/m", api_base="https://user:pw@llm.example.org/v1")
    other = Settings(system=settings.system, lm=LMSettings("x", spec), tracking=settings.tracking)
    with pytest.raises(DeclarationError, match="holds a password"):
        log_model(other, document, run_id)
