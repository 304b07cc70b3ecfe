"""Retrieval at the paper's size (148 documents, 5,386 chunks) and at 100,000 chunks, on generated text.

The paper's size is built with the fast embedder, the worst case for the share of time that is not embedding; its
queries are timed against embedding a text and an exact numpy search in the same process. At 100,000 chunks random unit
vectors serve, and a fresh process loads the index and answers.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dspy_mama.core.cases import DOMAINS, Passage
from dspy_mama.retrieval import build, build_index, make_embedder
from dspy_mama.retrieval.chroma import open_store
from dspy_mama.retrieval.chunking import CHUNKER_VERSION, chunk_document
from dspy_mama.retrieval.corpus import Document
from dspy_mama.retrieval.glossary import SHIPPED, load_glossary
from dspy_mama.retrieval.retriever import ChromaRetriever
from dspy_mama.retrieval.store import Entry, IndexHeader, collection_name, sizes_of
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings

DOCUMENTS, CHUNKS = 148, 5386
MANY = 100_000
DIMENSION = 384
QUERIES = 60
HEADER = (
    "---\nid: {id}\ntitle: Document {id}\npublisher: p\nurl: ''\nlicence: l\nlanguage: en\njurisdiction: JP\n"
    "domains: [medical, ethical, legal]\ncollection: encyclopedic\n---\n"
)


class Writer:
    """Sentences of made-up words whose frequencies fall as those of real ones, with the glossary's among them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        letters = np.array(list("abcdefghijklmnoprstuvw"))
        self.words = ["".join(self.rng.choice(letters, self.rng.integers(3, 10))) for _ in range(20_000)]
        glossary = load_glossary([SHIPPED])
        assert glossary is not None
        self.concepts = glossary.concepts
        for place, concept in zip(self.rng.permutation(len(self.words) // 4), self.concepts, strict=False):
            self.words[place] = concept["en"][0]
        weights = 1 / np.arange(1, len(self.words) + 1)
        self.shares = np.cumsum(weights / weights.sum())

    def sentences(self, count: int, length: int = 12) -> Iterator[str]:
        for row in np.searchsorted(self.shares, self.rng.random((count, length))):
            yield " ".join(self.words[place] for place in row).capitalize() + "."

    def question(self) -> str:
        """Four sentences, and a Japanese one that names twelve concepts of the glossary."""
        named = self.rng.choice(len(self.concepts), 12, replace=False)
        return f"{' '.join(self.sentences(4))} {'と'.join(self.concepts[number]['ja'][0] for number in named)}。"

    def text(self, characters: int) -> str:
        return " ".join(self.sentences(characters // 60 + 10))[:characters].rsplit(".", 1)[0] + "."


def write_corpus(folder: Path) -> int:
    """Writes documents whose chunks are as many as the paper's; returns their number."""
    writer, total = Writer(1), 0
    folder.mkdir()
    for number in range(DOCUMENTS):
        wanted = CHUNKS // DOCUMENTS + (number < CHUNKS % DOCUMENTS)
        text = writer.text(1100 * wanted + 2000)
        while (count := len(cut(number, text))) > wanted:
            text = text[: len(text) - max(200, 900 * (count - wanted - 1))].rsplit(".", 1)[0] + "."
        total += count
        (folder / f"d{number}.md").write_text(HEADER.format(id=f"d{number}") + text, encoding="utf-8")
    return total


def cut(number: int, text: str) -> Sequence[Any]:
    return chunk_document(Document(f"d{number}", "t", "p", "", "l", "en", "JP", DOMAINS, "law", text))


class Timed:
    """An embedder that keeps the seconds it took."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.seconds = inner, 0.0
        self.id, self.dimension = inner.id, inner.dimension

    def embed_documents(self, texts: Sequence[str]) -> Any:
        began = time.perf_counter()
        vectors = self.inner.embed_documents(texts)
        self.seconds += time.perf_counter() - began
        return vectors

    def embed_query(self, text: str) -> Any:
        return self.inner.embed_query(text)


class Mixed:
    """Random document vectors, and queries by the default embedder."""

    def __init__(self) -> None:
        self.queries = make_embedder(EmbedderSettings(threads=1))
        self.id, self.dimension = "bench/random", self.queries.dimension

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return unit(len(texts), self.dimension, seed=hash(texts[0]) & 0xFFFF)

    def embed_query(self, text: str) -> Any:
        return self.queries.embed_query(text)


def unit(count: int, dimension: int, seed: int = 0) -> Any:
    vectors = np.random.default_rng(seed).standard_normal((count, dimension), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def build_with(embedder: Any, corpus: CorpusSettings, retriever: RetrieverSettings) -> Any:
    original, build.make_embedder = build.make_embedder, lambda settings: embedder
    try:
        return build_index(corpus, EmbedderSettings(kind="use"), retriever)
    finally:
        build.make_embedder = original


def time_queries(embedder: Any, retriever: ChromaRetriever, seed: int) -> dict[str, Any]:
    """Times a search by turns with embedding and exact search, each on texts of its own that no cache knows."""
    vectors = np.ascontiguousarray(retriever._ranking.snapshot.vectors)
    writer = Writer(seed)
    texts = [writer.question() for _ in range(2 * QUERIES + 8)]
    ours, exact = [], []
    for number, text in enumerate(texts):
        began = time.perf_counter()
        if number % 2:
            retriever.search(text)
        else:
            scores = vectors @ embedder.embed_query(text)
            np.argsort(-scores)[:4]
        (ours if number % 2 else exact).append(time.perf_counter() - began)
    own, raw = statistics.median(ours[4:]), statistics.median(exact[4:])
    return {
        "ratio": round(own / raw, 3),
        "ms": {"library": round(1e3 * own, 2), "embed_and_numpy": round(1e3 * raw, 2)},
    }


def paper_size(folder: Path) -> Iterator[dict[str, Any]]:
    chunks = write_corpus(folder / "documents")
    corpus = CorpusSettings(name="generated", path=str(folder / "documents"))
    fast = Timed(make_embedder(EmbedderSettings(kind="use")))
    fast.embed_query("warm")
    settings = RetrieverSettings(path=str(folder / "fast"))
    report = build_with(fast, corpus, settings)
    yield {
        "bench": "retrieval_build",
        "ratio": round(fast.seconds / report.seconds, 3),
        "documents": report.documents,
        "chunks": report.chunks,
        "wanted_chunks": CHUNKS,
        "written_chunks": chunks,
        "seconds": round(report.seconds, 1),
        "seconds_in_embedder": round(fast.seconds, 1),
        "embedder": fast.id,
    }
    mixed = Mixed()
    default = RetrieverSettings(path=str(folder / "default"))
    build_with(mixed, corpus, default)
    for name, embedder, place in (("use", fast.inner, settings), ("e5", mixed, default)):
        for seed, search in enumerate(("hybrid", "dense"), 10):
            options = dataclasses.replace(place, search=search, centred=search == "hybrid")
            retriever = ChromaRetriever(options, cached(embedder, place), corpus)
            yield {
                "bench": "retrieval_query",
                **time_queries(embedder, retriever, seed),
                "embedder": name,
                "search": search,
                "chunks": report.chunks,
            }


def cached(embedder: Any, settings: RetrieverSettings) -> Any:
    from dspy_mama.retrieval.cache import CachedEmbedder, VectorCache

    return CachedEmbedder(embedder, VectorCache(Path(str(settings.path)) / "embeddings.sqlite"))


def store_many(folder: Path) -> float:
    """Stores 100,000 passages of 1,500 characters, and returns the seconds."""
    writer, corpus, settings = Writer(3), CorpusSettings(name="many"), RetrieverSettings(path=str(folder))
    sizes = (corpus.name, CHUNKER_VERSION, sizes_of(corpus))
    header = IndexHeader("bench/random", DIMENSION, sizes[1], sizes[2], sizes[0], MANY // 50, MANY, "r")
    began = time.perf_counter()
    with open_store(settings, collection_name(settings, corpus, header.embedder), create=True) as store:
        store.create(header)
        for at in range(0, MANY, 2000):
            entries = [
                Entry(
                    Passage(
                        id=f"d{n // 50}#{n:012x}", text=writer.text(1500), title=f"Document {n // 50}",
                        document=f"d{n // 50}", language="en", jurisdiction="JP", domains=DOMAINS, collection="law",
                    ),
                    "h",
                )
                for n in range(at, at + 2000)
            ]  # fmt: skip
            store.upsert(entries, unit(2000, DIMENSION, seed=at))
    return time.perf_counter() - began


class Random:
    """Query vectors from nowhere: the process's memory is the index's alone."""

    id, dimension = "bench/random", DIMENSION

    def embed_query(self, text: str) -> Any:
        return unit(1, DIMENSION, seed=len(text))[0]


def load_many(folder: str) -> None:
    """Loads the index in this process, answers, and prints what it took."""
    began = time.perf_counter()
    retriever = ChromaRetriever(RetrieverSettings(path=folder), Random(), CorpusSettings(name="many"))  # type: ignore[arg-type]
    loaded = time.perf_counter() - began
    seconds = []
    writer = Writer(4)
    for text in [writer.question() for _ in range(20)]:
        began = time.perf_counter()
        found = retriever.search(text)
        seconds.append(time.perf_counter() - began)
    assert all(len(found[domain]) == 4 for domain in DOMAINS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    line = {
        "bench": "retrieval_many",
        "ratio": round(peak / 2, 3),
        "peak_gigabytes": round(peak, 2),
        "chunks": retriever._ranking.snapshot.header.chunks,
        "load_seconds": round(loaded, 1),
        "search_ms": round(1e3 * statistics.median(seconds), 1),
        "search": retriever.settings.search,
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    """Prints one JSON line for building, four for queries and one for 100,000 chunks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for line in paper_size(folder):
            print(json.dumps(line), flush=True)
        store_many(folder / "many")
        subprocess.run([sys.executable, "-m", "tests.benchmark.retrieval_scale", str(folder / "many")], check=True)


if __name__ == "__main__":
    load_many(sys.argv[1]) if len(sys.argv) > 1 else main()
