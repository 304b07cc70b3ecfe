import importlib.util
import os
import tempfile
from pathlib import Path

# Before anything is imported that reads them: MLflow's telemetry and DSPy's price download stay off.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

GUARD = Path(__file__).parent / "guard"
_handle, _log = tempfile.mkstemp(prefix="network-", suffix=".log")
os.close(_handle)
NETWORK_LOG = Path(_log)
# Children inherit the guard: the whole suite stays on this machine, with every process that it starts.
os.environ["MAMA_NETWORK_LOG"] = _log
os.environ["PYTHONPATH"] = os.pathsep.join([str(GUARD), *filter(None, [os.environ.get("PYTHONPATH")])])
_spec = importlib.util.spec_from_file_location("network_guard", GUARD / "sitecustomize.py")
_spec.loader.exec_module(importlib.util.module_from_spec(_spec))  # with the log named, importing it installs it

import dspy  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture(autouse=True)
def _no_lm_left_behind():
    """A test that configures DSPy does not reach the next one."""
    before = dspy.settings.lm
    yield
    if dspy.settings.lm is not before:
        dspy.configure(lm=before)


@pytest.fixture
def fresh_cache():
    """DSPy's response cache, in memory alone, emptied around the test."""
    before = dspy.cache
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    yield dspy.cache
    dspy.cache = before


@pytest.fixture(scope="session")
def network_log():
    """File in which the guard notes every attempt to reach another machine, from this process and its children."""
    return NETWORK_LOG


def pytest_sessionfinish(session, exitstatus):
    """The suite fails if a test, or anything it started, tried to leave this machine."""
    attempts = sorted(set(NETWORK_LOG.read_text(encoding="utf-8").splitlines()))
    NETWORK_LOG.unlink()
    if attempts and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        reporter.write_line(f"connections beyond loopback were tried: {attempts}", red=True)
