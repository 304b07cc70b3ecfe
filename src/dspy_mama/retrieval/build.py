"""From documents to an index, doing only what has changed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dspy_mama.core.errors import DeclarationError, IndexStateError
from dspy_mama.core.ids import object_hash
from dspy_mama.retrieval.cache import CachedEmbedder, VectorCache, vector_key
from dspy_mama.retrieval.chroma import ChromaStore, open_store, set_aside
from dspy_mama.retrieval.chunking import CHUNKER_VERSION, chunk_document
from dspy_mama.retrieval.commands import IndexCommands
from dspy_mama.retrieval.corpus import corpus_folder, load_corpus
from dspy_mama.retrieval.embedding import make_embedder
from dspy_mama.retrieval.store import (
    Entry,
    IndexHeader,
    check_vectors,
    collection_name,
    entry_of,
    index_folder,
    sizes_of,
    stamp_file,
)
from dspy_mama.retrieval.vectors import read_vectors, vector_file, write_vectors
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings

_BATCH: Final = 64
"""Chunks embedded and stored at a time: the progress bar moves, and a killed build loses little."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did, in chunks unless said otherwise.

    Attributes:
        collection: Name of the collection.
        documents: Documents in the index.
        chunks: Chunks in the index.
        added: New ones.
        updated: Ones whose document's facts have changed.
        removed: Ones whose text is no longer in the corpus.
        kept: Ones that were left as they are.
        embedded: Texts that went through the embedder; the others came from the cache.
        seconds: Wall time.
    """

    collection: str
    documents: int
    chunks: int
    added: int
    updated: int
    removed: int
    kept: int
    embedded: int
    seconds: float


def build_index(
    corpus: CorpusSettings,
    embedder: EmbedderSettings,
    retriever: RetrieverSettings,
    *,
    rebuild: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> BuildReport:
    """Makes the index equal to the corpus; a second call embeds and writes nothing, a killed one is gone on with.

    Args:
        corpus: Documents and chunk sizes.
        embedder: Embedder; its vectors are cached.
        retriever: Where the index is.
        rebuild: Drop the collection first; a store that cannot be read is moved aside.
        progress: Called with (chunks done, chunks to do).

    Raises:
        DeclarationError: Documents, settings or the store are at fault.
        IndexStateError: The collection holds vectors of another embedder and `rebuild` is off.
        ExecutionError: The embedder or a Chroma server failed.
    """
    began = time.perf_counter()
    entries = corpus_entries(corpus)
    model = cached_embedder(embedder, retriever)
    name = collection_name(retriever, corpus, model.id)
    target = _header(corpus, entries, model)
    try:
        with _build_lock(retriever):
            prefill(model, corpus, embedder, entries)
            commands = IndexCommands.of(corpus, embedder, retriever)
            shown = progress or (lambda done, total: None)
            changes = _apply(retriever, name, target, entries, model, rebuild, shown, commands)
            _stamp(retriever, name, target.revision)
    finally:
        model.cache.close()
    return BuildReport(
        collection=name,
        documents=target.documents,
        chunks=target.chunks,
        added=len(changes.added),
        updated=len(changes.updated),
        removed=len(changes.removed),
        kept=changes.kept,
        embedded=model.embedded,
        seconds=time.perf_counter() - began,
    )


def export_vectors(
    corpus: CorpusSettings, embedder: EmbedderSettings, retriever: RetrieverSettings, path: Path | None = None
) -> Path:
    """Writes the corpus's vectors to a file that `build_index` reads, and returns its path.

    Args:
        corpus: Documents and chunk sizes.
        embedder: Embedder; vectors in its cache are taken from there.
        retriever: Where the cache is, unless `embedder.cache` says otherwise.
        path: The file; None = beside the documents.

    Raises:
        DeclarationError: Documents or settings are at fault, or the file cannot be written.
    """
    model = cached_embedder(embedder, retriever)
    try:
        target = path or vector_file(corpus_folder(corpus), embedder.kind)
        write_vectors(target, model, [entry.embedding_text for entry in corpus_entries(corpus).values()])
    finally:
        model.cache.close()
    return target


def corpus_entries(corpus: CorpusSettings) -> dict[str, Entry]:
    """Returns every chunk of the corpus by id, as the index should hold it.

    Raises:
        DeclarationError: Documents are at fault.
    """
    entries = (entry_of(doc, chunk) for doc in load_corpus(corpus) for chunk in chunk_document(doc, corpus))
    return {entry.passage.id: entry for entry in entries}


def cached_embedder(embedder: EmbedderSettings, retriever: RetrieverSettings) -> CachedEmbedder:
    """Returns the embedder with its cache on disk, in `embedder.cache` or beside the index.

    Raises:
        DeclarationError: The embedder or the cache cannot be had.
    """
    folder = Path(embedder.cache).expanduser() if embedder.cache else index_folder(retriever)
    return CachedEmbedder(make_embedder(embedder), VectorCache(folder / "embeddings.sqlite"))


def prefill(
    model: CachedEmbedder, corpus: CorpusSettings, embedder: EmbedderSettings, entries: Mapping[str, Entry]
) -> None:
    """Puts vectors that ship with the corpus into the cache where it lacks them."""
    keys = [vector_key(model.id, "document", entry.embedding_text) for entry in entries.values()]
    known = model.cache.get(keys, model.dimension)
    missing = {key for key in keys if key not in known}
    if missing:
        shipped = read_vectors(vector_file(corpus_folder(corpus), embedder.kind), model.dimension)
        model.cache.put({key: shipped[key] for key in missing if key in shipped})


@dataclass(frozen=True, slots=True)
class _Changes:
    added: list[str]
    updated: list[str]
    removed: list[str]
    kept: int


def _header(corpus: CorpusSettings, entries: Mapping[str, Entry], model: CachedEmbedder) -> IndexHeader:
    return IndexHeader(
        embedder=model.id,
        dimension=model.dimension,
        chunker=CHUNKER_VERSION,
        sizes=sizes_of(corpus),
        corpus=corpus.name,
        documents=len({entry.passage.document for entry in entries.values()}),
        chunks=len(entries),
        revision=object_hash({id: entry.hash for id, entry in entries.items()}, 16),
    )


def _apply(
    retriever: RetrieverSettings,
    name: str,
    target: IndexHeader,
    entries: Mapping[str, Entry],
    model: CachedEmbedder,
    rebuild: bool,
    progress: Callable[[int, int], None],
    commands: IndexCommands,
) -> _Changes:
    try:
        with open_store(retriever, name, create=True, commands=commands) as store:
            return _write(store, target, entries, model, rebuild, progress)
    except IndexStateError:
        if not rebuild or retriever.mode == "server":
            raise
    set_aside(retriever)
    with open_store(retriever, name, create=True, commands=commands) as store:
        return _write(store, target, entries, model, rebuild, progress)


def _write(
    store: ChromaStore,
    target: IndexHeader,
    entries: Mapping[str, Entry],
    model: CachedEmbedder,
    rebuild: bool,
    progress: Callable[[int, int], None],
) -> _Changes:
    building = dataclasses.replace(target, state="building")
    if rebuild and store.exists():
        store.drop()
    if store.exists():
        check_vectors(store.header(), store.name, target.embedder, target.dimension, store.commands)
    else:
        store.create(building)
    changes = _compare(store.hashes(), entries)
    if not (changes.added or changes.updated or changes.removed) and store.header() == target:
        return changes
    store.set_header(building)
    todo = changes.added + changes.updated
    for at in range(0, len(todo), _BATCH):
        progress(at, len(todo))
        part = [entries[id] for id in todo[at : at + _BATCH]]
        store.upsert(part, model.embed_documents([entry.embedding_text for entry in part]))
    progress(len(todo), len(todo))
    # Last, so that a search in between finds old or new text, never none.
    store.delete(changes.removed)
    store.set_header(target)
    return changes


def _compare(stored: Mapping[str, str], entries: Mapping[str, Entry]) -> _Changes:
    added = [id for id in entries if id not in stored]
    updated = [id for id, entry in entries.items() if id in stored and stored[id] != entry.hash]
    removed = [id for id in stored if id not in entries]
    return _Changes(added, updated, removed, len(entries) - len(added) - len(updated))


def _stamp(retriever: RetrieverSettings, name: str, revision: str) -> None:
    path = stamp_file(retriever, name)
    partial = path.with_suffix(".partial")
    partial.write_text(revision, encoding="utf-8")
    partial.replace(path)


def _build_lock(retriever: RetrieverSettings) -> AbstractContextManager[object]:
    """Returns a lock between processes: two that write one Chroma folder break its vector files."""
    from filelock import FileLock

    folder = index_folder(retriever)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DeclarationError(f"retriever.path: {folder} cannot be written: {error.strerror}") from error
    return FileLock(folder / "build.lock")
