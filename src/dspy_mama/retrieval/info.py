"""What an index holds, whether it still equals its corpus, and a search by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dspy_mama.core.cases import DOMAINS, Domain, Passage
from dspy_mama.core.errors import IndexStateError
from dspy_mama.retrieval.build import cached_embedder
from dspy_mama.retrieval.chroma import open_store
from dspy_mama.retrieval.chunking import CHUNKER_VERSION
from dspy_mama.retrieval.commands import IndexCommands
from dspy_mama.retrieval.corpus import load_corpus
from dspy_mama.retrieval.embedding import make_embedder
from dspy_mama.retrieval.glossary import load_glossary
from dspy_mama.retrieval.retriever import ChromaRetriever
from dspy_mama.retrieval.snapshot import Scope
from dspy_mama.retrieval.store import IndexHeader, collection_name, sizes_of
from dspy_mama.retrieval.way import way_of
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index beside its corpus.

    Attributes:
        name: Collection.
        where: Folder or address of the store.
        header: How it was made.
        languages: Documents by language.
        domains: Documents by risk domain; one may count for several.
        collections: Documents by collection.
        jurisdictions: Documents by jurisdiction.
        chunks: Chunks by language.
        new: Ids of documents that the index lacks.
        changed: Ids of documents that have changed since the build.
        gone: Ids of documents that are no longer in the corpus.
        fresh: The index is whole and equals the corpus, cut and embedded as the settings say.
        way: In which way the settings search it, as `way_of` tells it.
    """

    name: str
    where: str
    header: IndexHeader
    languages: dict[str, int]
    domains: dict[str, int]
    collections: dict[str, int]
    jurisdictions: dict[str, int]
    chunks: dict[str, int]
    new: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    fresh: bool
    way: dict[str, Any]


def index_info(corpus: CorpusSettings, embedder: EmbedderSettings, retriever: RetrieverSettings) -> IndexInfo:
    """Returns what the index holds and how it differs from the corpus; loads no model.

    Raises:
        DeclarationError: Documents, settings or a glossary are at fault.
        IndexStateError: There is no index, or it cannot be read.
    """
    model = make_embedder(embedder).id
    name = collection_name(retriever, corpus, model)
    current = {document.id: document.hash for document in load_corpus(corpus)}
    commands = IndexCommands.of(corpus, embedder, retriever)
    with open_store(retriever, name, commands=commands) as store:
        header = store.header() if store.exists() else None
        if header is None:
            raise IndexStateError(f"there is no index {name} at {store.where}: {commands.to_build}")
        stored, (passages, _) = store.document_hashes(), store.load()
        where = store.where
    documents = {passage.document: passage for passage in passages}.values()
    new = tuple(id for id in current if id not in stored)
    changed = tuple(id for id in current if id in stored and stored[id] != current[id])
    gone = tuple(sorted(id for id in stored if id not in current))
    made = (header.state, header.embedder, header.chunker, header.sizes)
    as_asked = made == ("ready", model, CHUNKER_VERSION, sizes_of(corpus))
    return IndexInfo(
        name=name,
        where=where,
        header=header,
        languages=_count(passage.language for passage in documents),
        domains=_count(domain for passage in documents for domain in passage.domains),
        collections=_count(passage.collection for passage in documents),
        jurisdictions=_count(passage.jurisdiction for passage in documents),
        chunks=_count(passage.language for passage in passages),
        new=new,
        changed=changed,
        gone=gone,
        fresh=as_asked and not (new or changed or gone),
        way=way_of(retriever, load_glossary(retriever.glossary) if retriever.search != "dense" else None),
    )


@contextmanager
def opened_index(
    corpus: CorpusSettings, embedder: EmbedderSettings, retriever: RetrieverSettings, scope: Scope | None = None
) -> Iterator[ChromaRetriever]:
    """Opens the index for a few searches by hand; the embedder's cache is closed at the end.

    Args:
        corpus: Corpus of the index.
        embedder: Embedder of the index.
        retriever: Where the index is, and how it is searched.
        scope: Which passages may be found; None = all.

    Raises:
        DeclarationError: Settings are at fault, or there is no fitting index.
    """
    model = cached_embedder(embedder, retriever)
    try:
        commands = IndexCommands.of(corpus, embedder, retriever)
        yield ChromaRetriever(retriever, model, corpus, scope, commands=commands)
    finally:
        model.cache.close()


def search_index(
    corpus: CorpusSettings,
    embedder: EmbedderSettings,
    retriever: RetrieverSettings,
    query: str,
    *,
    domains: Sequence[Domain] = DOMAINS,
    scope: Scope | None = None,
) -> dict[Domain, tuple[Passage, ...]]:
    """Searches the index once and returns passages per domain, best first.

    Args:
        corpus: Corpus of the index.
        embedder: Embedder of the index.
        retriever: Where the index is; `top_k`, `evidence_tokens` and `min_score` apply.
        query: Text to search with.
        domains: Domains to search for.
        scope: Which passages may be found; None = all.

    Raises:
        DeclarationError: Settings are at fault, or there is no fitting index.
        ExecutionError: The embedder failed.
    """
    with opened_index(corpus, embedder, retriever, scope) as index:
        return index.search(query, domains)


def _count(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
