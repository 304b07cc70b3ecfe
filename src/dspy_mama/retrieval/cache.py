"""A vector is computed once: cache by content hash, on disk and shared by processes."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import numpy as np

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.core.ports import Embedder
from dspy_mama.retrieval.embedding import Vectors

Kind = Literal["document", "query"]

_QUERIES: Final = 4096
"""Query vectors kept in memory: 6 MB at 384 dimensions."""
_BATCH: Final = 32
"""Documents embedded between two commits; a killed build loses at most so many."""
_VARIABLES: Final = 500
"""Values in one SQL statement; older builds of sqlite take at most 999."""


def vector_key(embedder: str, kind: Kind, text: str) -> bytes:
    """Returns the SHA-256 under which the vector of a text is kept."""
    # Lengths in front keep ("ab", "c") and ("a", "bc") apart.
    head = f"{len(embedder)}:{embedder}{kind}:"
    return sha256((head + text).encode("utf-8", "replace")).digest()


class VectorCache:
    """Vectors by key in one sqlite file (write-ahead log). Safe for threads and for several processes.

    Only hashes and numbers are stored, no text.
    """

    def __init__(self, path: Path) -> None:
        """Opens or makes the file.

        Raises:
            DeclarationError: The file cannot be written, or is no cache.
        """
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=60, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")  # a power cut may lose the last vectors, never the file
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as error:
            raise DeclarationError(
                f"embedding cache {path}: {error}; it holds nothing that cannot be computed again: delete the file, "
                "or set embedder.cache to a folder that can be written"
            ) from error

    def get(self, keys: Sequence[bytes], dimension: int) -> dict[bytes, Vectors]:
        """Returns the vectors that are there; one of another length is as good as missing.

        Raises:
            ExecutionError: The file cannot be read.
        """
        found: dict[bytes, Vectors] = {}
        for at in range(0, len(keys), _VARIABLES):
            part = keys[at : at + _VARIABLES]
            marks = ",".join("?" * len(part))
            with self._session() as db:
                rows = db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part).fetchall()
            for key, blob in rows:
                if len(blob) == 4 * dimension:
                    found[key] = np.frombuffer(blob, dtype="<f4").astype(np.float32)
        return found

    def put(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Stores vectors in one transaction.

        Raises:
            ExecutionError: The file cannot be written.
        """
        rows = [(key, np.asarray(vector, dtype="<f4").tobytes()) for key, vector in vectors.items()]
        with self._session() as db, db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    @contextmanager
    def _session(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._db
            except sqlite3.Error as error:
                raise ExecutionError(f"embedding cache {self.path}: {error}") from error

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._db.close()


class CachedEmbedder:
    """An embedder that asks its model only for what the cache does not hold. Safe to call from several threads."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        """Wraps an embedder."""
        self.inner = embedder
        self.cache = cache
        self.embedded = 0
        """Texts that went to the model."""
        self._lock = threading.Lock()
        self._queries: OrderedDict[bytes, Future[Vectors]] = OrderedDict()

    @property
    def id(self) -> str:
        """The model's own id: a cached vector is the same vector."""
        return self.inner.id

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.inner.dimension

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Returns unit vectors of shape (len(texts), dimension); each new text is embedded once and stored at once."""
        keys = [vector_key(self.id, "document", text) for text in texts]
        vectors = self.cache.get(keys, self.dimension)
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}.items())
        for at in range(0, len(missing), _BATCH):
            part = missing[at : at + _BATCH]
            fresh = dict(zip([k for k, _ in part], self.inner.embed_documents([t for _, t in part]), strict=True))
            self.cache.put(fresh)
            vectors.update(fresh)
            self._count(len(part))
        return np.stack([vectors[key] for key in keys]) if keys else np.empty((0, self.dimension), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Returns one unit vector of shape (dimension,); threads that ask for the same text share one computation."""
        key = vector_key(self.id, "query", text)
        with self._lock:
            future = self._queries.get(key)
            owner = future is None
            if future is None:
                future = self._queries[key] = Future()
                if len(self._queries) > _QUERIES:
                    self._queries.popitem(last=False)
            else:
                self._queries.move_to_end(key)
        if owner:
            self._resolve(future, key, text)
        return future.result()

    def _resolve(self, future: Future[Vectors], key: bytes, text: str) -> None:
        try:
            vector = self.cache.get([key], self.dimension).get(key)
            if vector is None:
                vector = self.inner.embed_query(text)
                self.cache.put({key: vector})
                self._count(1)
            vector.setflags(write=False)
            future.set_result(vector)
        except BaseException as error:  # noqa: BLE001 - handed to every thread that waits, this one included
            with self._lock:
                self._queries.pop(key, None)  # a failure is not kept: the next call tries again
            future.set_exception(error)

    def _count(self, texts: int) -> None:
        with self._lock:
            self.embedded += texts
