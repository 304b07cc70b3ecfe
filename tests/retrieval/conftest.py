from pathlib import Path

import pytest

from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings

HEADER = """---
id: {id}
title: "{title}"
publisher: project
url: https://example.org/{id}
licence: Apache-2.0
language: {language}
jurisdiction: {jurisdiction}
domains: [{domains}]
collection: {collection}
accessed: 2026-11-30
---
"""

DOCUMENTS = {
    "stroke": (
        "Stroke",
        "en",
        "INT",
        "medical",
        "encyclopedic",
        "Face droop, arm weakness and slurred speech are signs.",
    ),
    "asthma": (
        "Asthma",
        "en",
        "INT",
        "medical",
        "encyclopedic",
        "Wheezing and a tight chest at night point to asthma.",
    ),
    "ishi": (
        "医師法",
        "ja",
        "JP",
        "legal, medical",
        "law",
        "医師でなければ、医業をなしてはならない。違反には罰則がある。",
    ),
    "hipaa": ("HIPAA", "en", "US", "legal", "law", "The privacy rule protects health information of patients."),
    "consent": (
        "Consent",
        "en",
        "INT",
        "ethical, medical",
        "ethics",
        "Patients decide freely after they were informed.",
    ),
}


def write(folder: Path, id: str, **changes: str) -> Path:
    title, language, jurisdiction, domains, collection, text = DOCUMENTS.get(id, DOCUMENTS["stroke"])
    values = {"title": title, "language": language, "jurisdiction": jurisdiction, "domains": domains}
    values |= {"collection": collection, "text": text, "id": id} | changes
    path = folder / f"{id}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER.format(**values) + f"\n# {values['title']}\n\n{values['text']}\n", encoding="utf-8")
    return path


class House:
    """A corpus folder, an index folder and the settings for both."""

    def __init__(self, root: Path) -> None:
        self.documents = root / "documents"
        self.index = root / "index"
        self.corpus = CorpusSettings(name="test", path=str(self.documents))
        self.embedder = EmbedderSettings(kind="use")
        self.retriever = RetrieverSettings(path=str(self.index))

    def write(self, id: str, **changes: str) -> Path:
        return write(self.documents, id, **changes)

    def build(self, **options):
        from dspy_mama.retrieval import build_index

        return build_index(self.corpus, self.embedder, self.retriever, **options)

    def open(self, **options):
        from dspy_mama.retrieval import open_retriever

        return open_retriever(self.retriever, self.embedder, self.corpus, **options)


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A corpus of five documents that is not yet indexed."""
    made = House(tmp_path)
    for id in DOCUMENTS:
        made.write(id)
    return made


@pytest.fixture
def built(house: House) -> House:
    """The same corpus, indexed."""
    house.build()
    return house


@pytest.fixture
def web():
    """A web server on the loopback."""
    from retrieval.web_server import WebServer

    server = WebServer()
    yield server
    server.close()


@pytest.fixture
def make_client(tmp_path: Path):
    """Makes polite clients that note their waits in `client.waits` in place of waiting."""
    from dspy_mama.retrieval.sources.page_cache import PageCache
    from dspy_mama.retrieval.sources.polite import PoliteClient
    from dspy_mama.settings.sources import HttpSettings

    opened = []

    def make(now=None, **changes):
        waits: list[float] = []
        settings = HttpSettings(**({"delay": 0.0, "timeout": 5.0, "robots": False} | changes))
        options = {"now": now} if now else {}
        client = PoliteClient(settings, PageCache(tmp_path / "pages"), sleep=waits.append, **options)
        client.waits = waits
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.__exit__()
