"""Chroma, the store of record: opened for one piece of work and closed after it."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from dspy_mama.core.cases import Passage
from dspy_mama.core.errors import DeclarationError, ExecutionError, IndexStateError, MamaError
from dspy_mama.retrieval.commands import IndexCommands
from dspy_mama.retrieval.embedding import Vectors
from dspy_mama.retrieval.store import SPACE, Entry, IndexHeader, index_folder, passage_of
from dspy_mama.settings import RetrieverSettings

_PAGE: Final = 1000
"""Rows read from a store at once; a server's reply stays at a few megabytes."""

_OPENING = threading.Lock()
"""Chroma's registry of open stores has no lock of its own."""

logger = logging.getLogger(__name__)


class ChromaStore:
    """One collection of an open Chroma. Made by `open_store`; used by one thread."""

    def __init__(self, client: Any, name: str, where: str, commands: IndexCommands) -> None:
        """Keeps the client; the collection is looked up or made by the methods that need it."""
        self._client, self.name, self.where, self.commands = client, name, where, commands
        self._collection: Any = None

    def exists(self) -> bool:
        """Tells whether the collection is there, and takes it if so."""
        from chromadb.errors import NotFoundError

        try:
            self._collection = self._client.get_collection(self.name, embedding_function=None)
        except NotFoundError:
            return False
        return True

    def create(self, header: IndexHeader) -> None:
        """Makes the collection, empty. Its vectors are always given, never made by Chroma's default model."""
        self._collection = self._client.create_collection(
            self.name,
            metadata=header.to_metadata(),
            configuration={"hnsw": {"space": SPACE}},
            embedding_function=None,
        )

    def drop(self) -> None:
        """Deletes the collection."""
        self._client.delete_collection(self.name)
        self._collection = None

    def header(self) -> IndexHeader | None:
        """Returns the header, or None where another program made the collection."""
        return IndexHeader.from_metadata(self._collection.metadata)

    def set_header(self, header: IndexHeader) -> None:
        """Replaces the header."""
        self._collection.modify(metadata=header.to_metadata())

    def hashes(self) -> dict[str, str]:
        """Returns the content hash of every stored entry by id."""
        found: dict[str, str] = {}
        for page in self._pages(["metadatas"]):
            for id, metadata in zip(page["ids"], page["metadatas"], strict=True):
                found[id] = str((metadata or {}).get("hash", ""))
        return found

    def document_hashes(self) -> dict[str, str]:
        """Returns the content hash of every stored document by its id."""
        rows = (row or {} for page in self._pages(["metadatas"]) for row in page["metadatas"])
        return {str(row.get("document", "")): str(row.get("document_hash", "")) for row in rows}

    def upsert(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Adds or replaces entries, in as many calls as Chroma's limit asks for."""
        limit = self._client.get_max_batch_size()
        for at in range(0, len(entries), limit):
            part = entries[at : at + limit]
            self._collection.upsert(
                ids=[entry.passage.id for entry in part],
                embeddings=vectors[at : at + limit],
                metadatas=[entry.to_metadata() for entry in part],
                documents=[entry.passage.text for entry in part],
            )

    def delete(self, ids: Sequence[str]) -> None:
        """Deletes entries by id."""
        limit = self._client.get_max_batch_size()
        for at in range(0, len(ids), limit):
            self._collection.delete(ids=list(ids[at : at + limit]))

    def load(self) -> tuple[list[Passage], Vectors]:
        """Returns all passages, sorted by id, and their unit vectors in the same order."""
        passages: list[Passage] = []
        vectors: list[Vectors] = []
        for page in self._pages(["metadatas", "documents", "embeddings"]):
            rows = zip(page["ids"], page["documents"], page["metadatas"], strict=True)
            passages += [passage_of(id, text or "", metadata or {}) for id, text, metadata in rows]
            vectors.append(np.asarray(page["embeddings"], dtype=np.float32))
        order = sorted(range(len(passages)), key=lambda row: passages[row].id)
        matrix = np.concatenate(vectors)[order] if vectors else np.empty((0, 0), dtype=np.float32)
        return [passages[row] for row in order], np.ascontiguousarray(matrix)

    def _pages(self, include: list[str]) -> Iterator[Any]:
        for offset in range(0, self._collection.count(), _PAGE):
            yield self._collection.get(include=include, limit=_PAGE, offset=offset)


def chroma_file(settings: RetrieverSettings) -> Path:
    """Returns the file of the persistent store."""
    return index_folder(settings) / "chroma" / "chroma.sqlite3"


@contextmanager
def open_store(
    settings: RetrieverSettings, name: str, *, create: bool = False, commands: IndexCommands | None = None
) -> Iterator[ChromaStore]:
    """Opens the store for one piece of work.

    A client that stays open while another process writes fails to find vectors afterwards ("Error finding id", seen
    on chromadb 1.5.9), so no client is kept: opening takes about 10 ms.

    Args:
        settings: Where the store is.
        name: Collection.
        create: Make the folder of a persistent store if it is not there.
        commands: What messages tell to run; None = the commands without overrides.

    Raises:
        IndexStateError: There is no index, or it cannot be read; the message names the command that repairs.
        DeclarationError: The server cannot be reached, or the folder cannot be written.
        ExecutionError: The server failed.
    """
    commands = commands or IndexCommands()
    server = settings.mode == "server"
    where = f"{settings.host}:{settings.port}" if server else str(chroma_file(settings).parent)
    if not server and not create and not chroma_file(settings).exists():
        raise IndexStateError(f"there is no index at {where}: {commands.to_build}")
    import httpx
    from chromadb.errors import ChromaError

    client = _connect(settings, where) if server else _open(where, commands)
    try:
        yield ChromaStore(client, name, where, commands)
    except (ChromaError, httpx.HTTPError) as error:
        raise (_server_error(error, where) if server else _unreadable(error, where, commands)) from error
    finally:
        with _OPENING:
            client.close()


def set_aside(settings: RetrieverSettings) -> None:
    """Moves a persistent store that cannot be read out of the way, to `chroma.broken` beside it."""
    folder = chroma_file(settings).parent
    if folder.exists():
        broken = folder.with_name("chroma.broken")
        shutil.rmtree(broken, ignore_errors=True)
        folder.rename(broken)
        logger.warning("the index at %s could not be read; it now lies at %s", folder, broken)


def _settings() -> Any:
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def _open(where: str, commands: IndexCommands) -> Any:
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient

    try:
        Path(where).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DeclarationError(f"retriever.path: {where} cannot be written: {error.strerror}") from error
    with _OPENING:
        try:
            return chromadb.PersistentClient(path=where, settings=_settings())
        except Exception as error:
            # A store that failed to open stays registered and would answer the next attempt, half made.
            SharedSystemClient._identifier_to_system.pop(where, None)
            raise _unreadable(error, where, commands) from error


def _connect(settings: RetrieverSettings, where: str) -> Any:
    import chromadb

    try:
        return chromadb.HttpClient(host=settings.host, port=settings.port, settings=_settings())
    except Exception as error:
        raise DeclarationError(
            f"no Chroma server answers at {where} ({_line(error)}): start one with `chroma run --host {settings.host} "
            f"--port {settings.port}`, or set retriever.mode=persistent"
        ) from error


def _server_error(error: Exception, where: str) -> MamaError:
    return ExecutionError(f"Chroma at {where}: {_line(error)}")


def _unreadable(error: Exception, where: str, commands: IndexCommands) -> MamaError:
    return IndexStateError(f"the index at {where} cannot be read ({_line(error)}): {commands.to_rebuild}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
