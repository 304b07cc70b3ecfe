import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.retrieval.cache import CachedEmbedder, VectorCache, vector_key


class Counter:
    """An embedder that counts: the vector of a text is its length and its first letter, scaled."""

    def __init__(self, id="counter", delay=0.0):
        self.id, self.dimension, self.delay = id, 2, delay
        self.documents: list[str] = []
        self.queries: list[str] = []
        self.fail = False

    def _vector(self, text):
        if self.fail:
            raise ExecutionError("down")
        time.sleep(self.delay)
        vector = np.array([len(text), ord(text[0])], dtype=np.float32)
        return vector / np.linalg.norm(vector)

    def embed_documents(self, texts):
        self.documents += texts
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text):
        self.queries.append(text)
        return self._vector(text)


@pytest.fixture
def cache(tmp_path):
    opened = VectorCache(tmp_path / "deep" / "vectors.sqlite")
    yield opened
    opened.close()


def test_a_document_is_embedded_once_across_calls_and_objects(cache, tmp_path):
    model = Counter()
    first = CachedEmbedder(model, cache).embed_documents(["b", "aa", "b"])
    again = CachedEmbedder(model, VectorCache(cache.path)).embed_documents(["aa", "b", "ccc"])
    assert model.documents == ["b", "aa", "ccc"]
    np.testing.assert_array_equal(first[[1, 0]], again[:2])
    np.testing.assert_array_equal(first[0], first[2])


def test_no_text_gives_an_empty_matrix(cache):
    assert CachedEmbedder(Counter(), cache).embed_documents([]).shape == (0, 2)


def test_threads_that_ask_for_one_query_share_one_computation(cache):
    model = Counter(delay=0.05)
    embedder = CachedEmbedder(model, cache)
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(embedder.embed_query, ["same"] * 16 + ["other"] * 16))
    assert sorted(model.queries) == ["other", "same"]
    assert embedder.embedded == 2
    np.testing.assert_array_equal(vectors[0], vectors[15])


def test_a_query_outlives_its_process(cache):
    model = Counter()
    CachedEmbedder(model, cache).embed_query("pain")
    CachedEmbedder(model, cache).embed_query("pain")
    assert model.queries == ["pain"]


def test_a_failure_is_not_kept(cache):
    model = Counter()
    embedder = CachedEmbedder(model, cache)
    model.fail = True
    for _ in range(2):
        with pytest.raises(ExecutionError, match="down"):
            embedder.embed_query("pain")
    model.fail = False
    assert embedder.embed_query("pain").shape == (2,)
    assert model.queries == ["pain"] * 3


def test_what_was_embedded_before_a_failure_is_kept(cache):
    model = Counter()
    embedder = CachedEmbedder(model, cache)
    texts = [f"{n:03}" for n in range(100)]

    def fail_late(part):
        if "050" in part:
            raise ExecutionError("down")
        return Counter().embed_documents(part)

    model.embed_documents = fail_late
    with pytest.raises(ExecutionError):
        embedder.embed_documents(texts)
    assert len(cache.get([vector_key("counter", "document", text) for text in texts], 2)) == 32


def test_a_caller_cannot_change_a_kept_query_vector(cache):
    vector = CachedEmbedder(Counter(), cache).embed_query("pain")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 5


def test_embedder_kind_and_text_all_make_the_key():
    keys = {
        vector_key(e, k, t)
        for e, k, t in [
            ("a", "query", "b"),
            ("a", "document", "b"),
            ("ab", "query", ""),
            ("a", "query", "bquery:"),
            ("aquery:b", "query", ""),
        ]
    }
    assert len(keys) == 5


def test_a_vector_of_another_length_counts_as_missing(cache):
    key = vector_key("m", "document", "x")
    cache.put({key: np.ones(3, dtype=np.float32)})
    assert cache.get([key], 2) == {}
    assert list(cache.get([key], 3)) == [key]


def test_more_keys_than_one_statement_takes_are_found(cache):
    keys = [vector_key("m", "document", str(n)) for n in range(1700)]
    cache.put({key: np.full(2, n, dtype=np.float32) for n, key in enumerate(keys)})
    found = cache.get(keys, 2)
    assert [int(found[key][0]) for key in keys] == list(range(1700))


def test_no_text_is_written_to_disk(cache):
    CachedEmbedder(Counter(), cache).embed_query("very-private-question")
    cache.close()
    assert not any(b"very-private" in file.read_bytes() for file in cache.path.parent.iterdir())


WRITER = """
import sys
from pathlib import Path
import numpy as np
from dspy_mama.retrieval.cache import VectorCache, vector_key
cache = VectorCache(Path(sys.argv[1]))
for n in range(150):
    cache.put({vector_key("m", "document", f"{sys.argv[2]}{n}"): np.ones(4, dtype=np.float32)})
"""


def test_two_processes_write_the_same_file(tmp_path):
    path = tmp_path / "v.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    keys = [vector_key("m", "document", f"{name}{n}") for name in "ab" for n in range(150)]
    assert len(VectorCache(path).get(keys, 4)) == 300


def test_threads_write_the_same_object(cache):
    def write(name):
        for n in range(50):
            cache.put({vector_key("m", "document", f"{name}{n}"): np.ones(2, dtype=np.float32)})

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache.get([vector_key("m", "document", f"{a}{n}") for a in "abcd" for n in range(50)], 2)) == 200


def test_a_file_that_is_no_cache_says_what_to_do(tmp_path):
    path = tmp_path / "v.sqlite"
    path.write_bytes(b"garbage " * 1000)
    with pytest.raises(DeclarationError, match="delete the file"):
        VectorCache(path)
    with pytest.raises(DeclarationError, match="folder that can be written"):
        VectorCache(path / "below" / "a.sqlite")
