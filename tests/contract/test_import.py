"""Importing the package is free of side effects and loads none of the heavy frameworks."""

import json
import subprocess
import sys

import pytest

HEAVY = {"mlflow", "chromadb", "hydra", "omegaconf", "xllamacpp", "datasets", "pandas", "matplotlib", "sklearn"}

WATCH = """
import json, logging, sys
import dspy
root = logging.getLogger()
handlers, before = list(root.handlers), set(sys.modules)
events = []

def watch(event, args):
    if event == "open" and not ("__pycache__" in str(args[0]) or str(args[0]).endswith((".py", ".pyc"))):
        events.append([event, str(args[0])])
    elif event.startswith(("socket.connect", "socket.getaddrinfo", "subprocess", "os.mkdir", "os.rename")):
        events.append([event, repr(args)[:200]])

sys.addaudithook(watch)
MODULES
print(json.dumps({
    "events": events, "loaded": sorted(set(sys.modules) - before), "handlers": root.handlers != handlers,
}))
"""


def watched(statement):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WATCH.replace("MODULES", statement)],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.mark.parametrize(
    "statement",
    ["import dspy_mama", "from dspy_mama import RiskAuditor", "import dspy_mama.lm", "import dspy_mama.retrieval"],
)
def test_importing_opens_nothing_and_loads_no_framework(statement):
    seen, errors = watched(statement)
    assert seen["events"] == []
    assert seen["handlers"] is False
    assert [name for name in seen["loaded"] if name.split(".")[0] in HEAVY] == []
    assert errors == ""


def test_the_package_itself_is_a_handful_of_modules():
    seen, _ = watched("import dspy_mama")
    assert [name for name in seen["loaded"] if name.startswith("dspy_mama")] == ["dspy_mama"]


def test_every_public_name_can_be_had():
    import dspy_mama

    assert all(getattr(dspy_mama, name) is not None for name in dspy_mama.__all__)
    assert set(dspy_mama.__all__) <= set(dir(dspy_mama))
    with pytest.raises(AttributeError, match="nonsense"):
        dspy_mama.nonsense  # noqa: B018
