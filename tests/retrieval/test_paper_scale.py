"""The paper's corpus in size: 148 documents, 5,386 chunks, its retrieval systems, with generated text."""

import random
import re
import zlib

import numpy as np
import pytest

from dspy_mama.core.cases import DOMAINS
from dspy_mama.retrieval import build, build_index, chunk_document, info, open_retriever
from dspy_mama.retrieval.corpus import Document
from dspy_mama.retrieval.sources.writing import write
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings
from dspy_mama.systems.audit import SYSTEMS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

DOCUMENTS, CHUNKS = 148, 5_386
KINDS = [  # Wikipedia, Japanese Law Translation, MHLW, and the foreign sources of the appendix
    ("encyclopedic", "INT", ("medical", "ethical", "legal")),
    ("law", "JP", ("legal",)),
    ("guidance", "JP", ("medical", "ethical")),
    ("law", "US", ("legal",)),
    ("guidance", "EU", ("medical", "ethical")),
]


class MarkerEmbedder:
    """Unit vectors from the words that hold a digit: texts of the same marker meet, filler weighs nothing."""

    id, dimension = "markers", 256

    def embed_documents(self, texts):
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text):
        vector = np.zeros(self.dimension, np.float32)
        vector[0] = 0.1
        for word in re.findall(r"[a-z]+\d+", text.lower()):
            for salt in (b"a", b"b", b"c"):
                vector[zlib.crc32(salt + word.encode()) % self.dimension] += 1
        return vector / np.linalg.norm(vector)


def paragraph(rng):
    """Sentences of equal length, so that equal numbers of paragraphs make equal numbers of chunks."""
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(80)]
    return " ".join(" ".join(words[start : start + 10]) + "." for start in range(0, 80, 10))


def document(number, paragraphs):
    collection, jurisdiction, domains = KINDS[number % len(KINDS)]
    rng = random.Random(number)
    text = f"# Doc {number:03d}\n\n" + "\n\n".join(paragraph(rng) for _ in range(paragraphs))
    text += f"\n\n## Article 17\n\nThe marker{number:03d} rule is written under marker{number:03d} alone."
    url = f"https://example.org/{number}"
    return Document(
        f"d{number:03d}",
        f"Doc {number:03d}",
        "p",
        url,
        "CC0",
        "en",
        jurisdiction,
        domains,
        collection,
        text,
        "2026-11-30",
    )


def corpus(sizes):
    """Documents that make exactly the paper's number of chunks."""
    wanted, more = divmod(CHUNKS, DOCUMENTS)
    counts = {n: len(chunk_document(document(0, n), sizes)) for n in range(36, 40)}
    paragraphs = {count: n for n, count in counts.items()}
    return [document(n, paragraphs[wanted + (n < more)]) for n in range(DOCUMENTS)]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """The index with its settings and report."""
    root = tmp_path_factory.mktemp("paper")
    settings = CorpusSettings(name="paper", path=str(root / "documents"), cjk_chunk_size=1500, cjk_chunk_overlap=500)
    for made in corpus(settings):
        write(made, root / "documents")
    embedder, retriever = EmbedderSettings(kind="use"), RetrieverSettings(path=str(root / "index"))
    with pytest.MonkeyPatch.context() as patch:
        for module in (build, info):
            patch.setattr(module, "make_embedder", lambda _: MarkerEmbedder())
        report = build_index(settings, embedder, retriever)
        yield lambda **options: open_retriever(retriever, embedder, settings, **options), report


def test_it_is_built_whole(indexed):
    _, report = indexed
    assert (report.documents, report.chunks, report.added) == (DOCUMENTS, CHUNKS, CHUNKS)


@pytest.mark.parametrize(
    ("system", "numbers"),
    [("embedding", range(0, 20, 5)), ("rag", range(1, 20, 5)), ("rag", range(2, 20, 5)), ("rag_foreign", (3, 4, 8, 9))],
)
async def test_each_system_finds_what_its_sources_say_and_nothing_else(indexed, system, numbers):
    open_index, _ = indexed
    chosen = SYSTEMS[system]
    retriever = open_index(context=chosen.context, jurisdictions=chosen.jurisdictions)
    for number in numbers:
        found = await retriever.asearch(f"the rule that is written under marker{number:03d} alone", DOMAINS)
        domains = KINDS[number % len(KINDS)][2]
        assert all(found[domain][0].document == f"d{number:03d}" for domain in domains)
        assert all("Article 17" in found[domain][0].section for domain in domains)
        shown = [passage for domain in DOMAINS for passage in found[domain]]
        assert {passage.jurisdiction for passage in shown} <= set(chosen.jurisdictions)
        assert system != "embedding" or {passage.collection for passage in shown} == {"encyclopedic"}
