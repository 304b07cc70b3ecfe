import getpass
import json
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from dspy_mama.core.ids import file_hash
from dspy_mama.tracking import build_manifest
from dspy_mama.tracking.manifest import git_state, portable

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_a_checkout_is_described_by_its_commit_and_whether_it_was_changed(tmp_path):
    assert git_state(tmp_path) is None
    git(tmp_path, "init")
    assert git_state(tmp_path) is None
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "a")
    clean = git_state(tmp_path)
    (tmp_path / "a").write_text("2")

    assert clean == {"commit": clean["commit"], "dirty": False}
    assert len(clean["commit"]) == 40
    assert git_state(tmp_path) == {"commit": clean["commit"], "dirty": True}


def test_it_holds_what_is_needed_to_repeat_the_run_and_not_whose_machine_it_was(tmp_path):
    data = tmp_path / "data" / "pairs.csv"
    data.parent.mkdir()
    data.write_text("id\n1\n")
    manifest = build_manifest(
        {"experiment": {"seed": 7}},
        STARTED,
        command=[str(Path.home() / "bin" / "mama"), "evaluate", f"data.path={data}"],
        data=[data.parent],
        corpus={"chunks": 3},
        models={"judge": {"model": "m", "sha256": "s"}},
        prompts={"judge": "Decide."},
        folder=tmp_path,
    )

    assert manifest["data"] == {"data/pairs.csv": file_hash(data)}
    assert manifest["command"] == ["mama", "evaluate", "data.path=data/pairs.csv"]
    assert (manifest["seed"], manifest["started"]) == (7, "2026-01-02T03:04:05+00:00")
    assert manifest["packages"]["mlflow"].startswith("3.")
    assert "Decide." not in json.dumps(manifest)
    text = json.dumps(manifest)
    assert platform.node() not in text
    assert f'"{getpass.getuser()}"' not in text
    assert str(tmp_path) not in text


def test_paths_become_relative_and_the_home_folder_a_tilde(tmp_path):
    home = str(Path.home())

    assert portable(str(tmp_path / "a" / "b"), tmp_path) == "a/b"
    assert portable(str(tmp_path), tmp_path) == "."
    assert portable(f"{home}/models/x.gguf", tmp_path) == "~/models/x.gguf"
    assert portable(f"{home}ed/x", tmp_path) == f"{home}ed/x"
    assert portable("data=kqa", tmp_path) == "data=kqa"
