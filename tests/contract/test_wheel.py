"""An installed copy works from any folder: conf and shipped data travel inside the wheel."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_conf_data_types_and_templates(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for needed in (
        "dspy_mama/py.typed",
        "dspy_mama/conf/config.yaml",
        "dspy_mama/conf/system/rag.yaml",
        "dspy_mama/data/sample/pairs.csv",
        "dspy_mama/data/corpus/vectors.e5.npz",
        "dspy_mama/reporting/assets/report.html.j2",
    ):
        assert needed in names
    assert not [name for name in names if name.startswith(("tests/", "mlruns/"))]


def test_an_installed_copy_composes_and_loads_from_another_folder(wheel, tmp_path):
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    code = (
        "import dspy_mama, pathlib\n"
        "from dspy_mama.wiring.compose import compose\n"
        "from dspy_mama.datasets import load_pairs\n"
        "from dspy_mama.retrieval import load_corpus\n"
        "assert 'site' in dspy_mama.__file__, dspy_mama.__file__\n"
        "print(len(load_pairs(compose().data).pairs), len(load_corpus()))"
    )
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-1500:]
    assert done.stdout.split() == ["40", "87"]
