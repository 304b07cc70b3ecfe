import logging
import pickle
import zipfile

import numpy as np
import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.retrieval.cache import CachedEmbedder, VectorCache, vector_key
from dspy_mama.retrieval.vectors import read_vectors, write_vectors


class Random:
    id, dimension = "random", 16

    def embed_documents(self, texts):
        rows = np.stack([np.random.default_rng(len(text)).standard_normal(16) for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def embed_query(self, text):
        return self.embed_documents([text])[0]


@pytest.fixture
def embedder(tmp_path):
    return CachedEmbedder(Random(), VectorCache(tmp_path / "v.sqlite"))


def test_vectors_come_back_as_unit_vectors_near_the_first(embedder, tmp_path):
    path = tmp_path / "vectors.x.npz"
    assert write_vectors(path, embedder, ["a", "bb", "a"]) == 2
    read = read_vectors(path, 16)
    for text in ("a", "bb"):
        vector = read[vector_key("random", "document", text)]
        assert vector.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vector), 1, atol=1e-6)
        np.testing.assert_allclose(vector, embedder.embed_query(text), atol=1e-3)


def test_the_same_vectors_make_the_same_file(embedder, tmp_path):
    write_vectors(tmp_path / "a.npz", embedder, ["a", "bb", "ccc"])
    write_vectors(tmp_path / "b.npz", embedder, ["ccc", "bb", "a"])
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert zipfile.ZipFile(tmp_path / "a.npz").infolist()[0].date_time[0] == 1980
    assert not list(tmp_path.glob("*.tmp*"))


@pytest.mark.parametrize("damage", ["missing", "garbage", "empty", "pickled", "other dimension", "no keys"])
def test_a_file_that_cannot_be_used_is_left_out(embedder, tmp_path, damage, caplog):
    path = tmp_path / "vectors.x.npz"
    write_vectors(path, embedder, ["a"])
    match damage:
        case "missing":
            path.unlink()
        case "garbage":
            path.write_bytes(b"garbage" * 100)
        case "empty":
            path.write_bytes(b"")
        case "pickled":
            path.write_bytes(pickle.dumps({"keys": 1}))
        case "other dimension":
            np.savez(path, keys=np.zeros((1, 32), np.uint8), vectors=np.ones((1, 8), np.float16))
        case "no keys":
            np.savez(path, vectors=np.ones((1, 16), np.float16))
    with caplog.at_level(logging.WARNING):
        assert read_vectors(path, 16) == {}
    assert bool(caplog.records) == (damage not in ("missing", "other dimension"))


def test_vectors_that_are_no_unit_vectors_are_left_out(tmp_path):
    keys = np.arange(96, dtype=np.uint8).reshape(3, 32)
    vectors = np.zeros((3, 16), np.float16)
    vectors[1, 0], vectors[2, 0] = np.nan, 1
    np.savez(tmp_path / "v.npz", keys=keys, vectors=vectors)
    assert list(read_vectors(tmp_path / "v.npz", 16)) == [keys[2].tobytes()]


def test_a_folder_that_is_not_there_is_named(embedder, tmp_path):
    with pytest.raises(DeclarationError, match="cannot be written"):
        write_vectors(tmp_path / "none" / "v.npz", embedder, ["a"])
