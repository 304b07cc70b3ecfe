"""Nothing is sent or fetched that nobody asked for: no telemetry, no model at the first query."""

import json
import os
import subprocess
import sys

import chromadb
import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.retrieval.chroma import open_store
from dspy_mama.settings import RetrieverSettings

BUILD_AND_SEARCH = """
import json, sys

from dspy_mama.retrieval import build_index, search_index
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings

settings = CorpusSettings(path=sys.argv[1]), EmbedderSettings(kind=sys.argv[3]), RetrieverSettings(path=sys.argv[2])
build_index(*settings)
found = search_index(*settings, "医師でない者が診断してもよいですか")
print(json.dumps([passage.document for passage in found["legal"]]))
"""


@pytest.mark.parametrize("embedder", ["e5", "use"])
def test_building_and_searching_ask_for_no_network_and_leave_no_model_behind(house, tmp_path, network_log, embedder):
    home = tmp_path / "home"
    home.mkdir()
    # Chroma's switch stands on "send", as a user's shell may have it.
    environment = {**os.environ, "HOME": str(home), "ANONYMIZED_TELEMETRY": "True"}
    for name in [name for name in environment if name.startswith("XDG_")]:
        del environment[name]
    before = network_log.read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", BUILD_AND_SEARCH, str(house.documents), str(house.index), embedder],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])[0] == "ishi"
    assert network_log.read_text(encoding="utf-8") == before
    assert not [path for path in home.rglob("*") if path.suffix in (".onnx", ".gz", ".bin", ".gguf")]


def test_every_client_is_told_to_send_no_telemetry(tmp_path, monkeypatch, unused_tcp_port):
    told = []

    def watched(make):
        def call(*arguments, settings, **options):
            told.append(settings.anonymized_telemetry)
            return make(*arguments, settings=settings, **options)

        return call

    for name in ("PersistentClient", "HttpClient"):
        monkeypatch.setattr(chromadb, name, watched(getattr(chromadb, name)))
    monkeypatch.setenv("ANONYMIZED_TELEMETRY", "True")
    with open_store(RetrieverSettings(path=str(tmp_path)), "name", create=True):
        pass
    with pytest.raises(DeclarationError), open_store(RetrieverSettings(mode="server", port=unused_tcp_port), "name"):
        pass
    assert told == [False, False]
