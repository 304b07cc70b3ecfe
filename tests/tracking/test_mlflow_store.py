import os
import subprocess
import sys
from pathlib import Path

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.tracking.mlflow_store import locate


def test_the_default_is_sqlite_and_artifacts_under_the_root_in_absolute_terms(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    found = locate(None, "mlruns")

    assert found.uri == f"sqlite:///{tmp_path}/mlruns/mlflow.db"
    assert found.artifacts == (tmp_path / "mlruns" / "artifacts").as_uri()


def test_a_relative_sqlite_address_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert locate("sqlite:///here.db", "r").uri == f"sqlite:///{tmp_path}/here.db"
    assert locate("sqlite:////var/there.db", "r").uri == "sqlite:////var/there.db"


@pytest.mark.parametrize("uri", ["http://127.0.0.1:5000", "https://x", "databricks"])
def test_a_server_decides_about_its_artifacts(uri):
    assert locate(uri, "mlruns").artifacts is None


@pytest.mark.parametrize("uri", ["./mlruns", "mlruns", "/var/mlruns", "file:./mlruns", "file:///var/mlruns"])
def test_file_stores_are_refused_with_the_way_out(uri):
    with pytest.raises(DeclarationError, match=r"tracking\.uri=.*mlflow migrate-filestore --source [^f]"):
        locate(uri, "mlruns")


def test_importing_the_room_loads_no_mlflow_and_opening_a_store_switches_telemetry_off(tmp_path):
    code = f"""
import sys, os
import dspy_mama.tracking
assert "mlflow" not in sys.modules
from dspy_mama.tracking.mlflow_store import locate, open_client
open_client(locate(None, {str(tmp_path / "our-store")!r}))
import mlflow
from mlflow.telemetry.utils import is_telemetry_disabled
print(is_telemetry_disabled(), mlflow.active_run(), "our-store" in mlflow.get_tracking_uri(), os.listdir())
"""
    quiet = {
        "MLFLOW_DISABLE_TELEMETRY",
        "DO_NOT_TRACK",
        "CI",
        "PYTEST_CURRENT_TEST",
        "GITHUB_ACTIONS",
        "MLFLOW_TRACKING_URI",
    }
    environment = {k: v for k, v in os.environ.items() if k not in quiet}
    work = tmp_path / "work"
    work.mkdir()

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=work, env=environment, capture_output=True, text=True, timeout=120
    )

    assert (done.stdout, done.stderr) == ("True None False []\n", "")
    assert Path(tmp_path, "our-store", "mlflow.db").exists()
