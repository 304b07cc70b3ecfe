import json
import sys
import threading
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.retrieval import remote
from dspy_mama.retrieval.embedding import make_embedder
from dspy_mama.settings import EmbedderSettings


class Endpoint(ThreadingHTTPServer):
    """A real OpenAI-compatible endpoint on loopback; `replies` are used up before the good ones begin."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict] = []
        self.keys: list[str] = []
        self.replies: list[tuple[int, dict | str]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.keys.append(self.headers["Authorization"])
        rows = [{"index": n, "embedding": [len(t), 1.0, 2.0]} for n, t in enumerate(body["input"])]
        status, reply = 200, {"data": rows[::-1], "model": "m", "usage": {}}
        if self.server.replies:
            status, reply = self.server.replies.pop(0)
        data = (reply if isinstance(reply, str) else json.dumps(reply)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    with Endpoint() as server:
        yield server
        server.shutdown()


def settings(endpoint, **more):
    return EmbedderSettings(kind="openai", model="m", api_base=endpoint.base, **more)


def test_texts_are_sent_in_batches_and_vectors_come_back_in_order(endpoint):
    embedder = make_embedder(settings(endpoint))
    texts = ["x" * n for n in range(1, 131)]
    vectors = embedder.embed_documents(texts)
    assert [len(request["input"]) for request in endpoint.requests] == [64, 64, 2]
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], range(1, 131), rtol=1e-4)
    assert embedder.dimension == 3
    assert embedder.id == f"openai/m@{endpoint.base}"


def test_a_busy_or_failing_server_is_asked_again(endpoint):
    endpoint.replies = [(429, {"error": {"message": "slow down"}}), (503, {"error": {"message": "restarting"}})]
    assert make_embedder(settings(endpoint)).embed_query("a").shape == (3,)
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize(
    ("status", "reply", "error", "words"),
    [
        (401, {"error": {"message": "bad key"}}, DeclarationError, "refuses the key"),
        (404, {"error": {"message": "no model m"}}, DeclarationError, "no model m"),
        (400, {"error": {"message": "too long"}}, DeclarationError, "too long"),
        (200, {"data": []}, ExecutionError, "1 vectors expected"),
        (200, {"data": None}, ExecutionError, "unreadable"),
        (200, {"data": [{"index": 0, "embedding": [0.0, 0.0]}]}, ExecutionError, "zero"),
        (200, "<html>", ExecutionError, "m@"),
    ],
)
def test_a_useless_reply_is_said_in_words(endpoint, status, reply, error, words):
    endpoint.replies = [(status, reply)]
    with pytest.raises(error, match=words):
        make_embedder(settings(endpoint)).embed_query("a")


def test_an_endpoint_that_is_not_there_is_an_execution_error(endpoint, monkeypatch):
    monkeypatch.setattr(remote, "_RETRIES", 0)
    absent = EmbedderSettings(kind="openai", model="m", api_base="http://127.0.0.1:9/v1")
    with pytest.raises(ExecutionError, match=r"127\.0\.0\.1:9"):
        make_embedder(absent).embed_query("a")


def test_the_wrong_dimension_is_found_with_the_first_vector(endpoint):
    with pytest.raises(DeclarationError, match="3 dimensions, not 8"):
        make_embedder(settings(endpoint, dimension=8)).embed_query("a")


def test_the_key_comes_from_the_named_variable_and_openais_never_leaves_for_another_host(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("MY_KEY", "mine")
    make_embedder(settings(endpoint)).embed_query("a")
    make_embedder(settings(endpoint, api_key_env="MY_KEY")).embed_query("a")
    assert endpoint.keys == ["Bearer unused", "Bearer mine"]


def test_a_missing_key_names_its_variable(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(DeclarationError, match="OPENAI_API_KEY"):
        make_embedder(EmbedderSettings(kind="openai"))


def test_the_papers_model_has_a_known_dimension(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    embedder = make_embedder(EmbedderSettings(kind="openai"))
    assert (embedder.id, embedder.dimension) == ("openai/text-embedding-3-small", 1536)


def test_sentence_transformers_names_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DeclarationError, match="pip install sentence-transformers"):
        make_embedder(EmbedderSettings(kind="sentence_transformers", model="m"))
    with pytest.raises(DeclarationError, match=r"embedder\.model"):
        make_embedder(EmbedderSettings(kind="sentence_transformers"))


def test_sentence_transformers_uses_the_side_of_the_text(monkeypatch):
    class Model:
        def __init__(self, name):
            if name == "absent":
                raise OSError("absent is not a local folder")

        def encode(self, texts, show_progress_bar):
            return np.array([[1.0, 0.0]] * len(texts))

        def encode_query(self, texts, show_progress_bar):
            return np.array([[0.0, 2.0]] * len(texts))

        def get_sentence_embedding_dimension(self):
            return 2

    module = types.SimpleNamespace(SentenceTransformer=Model)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: module)
    embedder = make_embedder(EmbedderSettings(kind="sentence_transformers", model="m"))
    assert embedder.dimension == 2
    assert embedder.embed_query("a").tolist() == [0.0, 1.0]
    assert embedder.embed_documents(["a"]).tolist() == [[1.0, 0.0]]
    with pytest.raises(DeclarationError, match="absent is not a local folder"):
        make_embedder(EmbedderSettings(kind="sentence_transformers", model="absent")).embed_query("a")
