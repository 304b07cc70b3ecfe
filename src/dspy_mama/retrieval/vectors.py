"""Vectors that ship beside a corpus or its queries, so that indexing and measuring need no embedding."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dspy_mama.core.errors import DeclarationError
from dspy_mama.retrieval.cache import CachedEmbedder, Kind, vector_key
from dspy_mama.retrieval.embedding import Vectors

logger = logging.getLogger(__name__)


def vector_file(folder: Path, kind: str) -> Path:
    """Returns where the vectors of an embedder kind lie beside a corpus."""
    return folder / f"vectors.{kind}.npz"


def write_vectors(path: Path, embedder: CachedEmbedder, texts: Sequence[str], kind: Kind = "document") -> int:
    """Writes the vectors of texts, as float16 by content hash, and returns how many. Same input, same file.

    Args:
        path: The file.
        embedder: Embedder; vectors in its cache are taken from there.
        texts: Texts, in any order.
        kind: Whether they are documents or queries.

    Raises:
        DeclarationError: The file cannot be written.
    """
    unique = sorted(set(texts), key=lambda text: vector_key(embedder.id, kind, text))
    keys = np.frombuffer(b"".join(vector_key(embedder.id, kind, text) for text in unique), dtype=np.uint8)
    if kind == "document":
        vectors = embedder.embed_documents(unique).astype(np.float16)
    else:
        vectors = np.stack([embedder.embed_query(text) for text in unique]).astype(np.float16)
    partial = path.with_suffix(".tmp.npz")
    try:
        np.savez(partial, embedder=np.array(embedder.id), keys=keys.reshape(-1, 32), vectors=vectors)
        partial.replace(path)
    except OSError as error:
        raise DeclarationError(f"{path} cannot be written: {error.strerror}") from error
    return len(unique)


def read_vectors(path: Path, dimension: int) -> dict[bytes, Vectors]:
    """Returns unit vectors by content hash; empty where there is no usable file.

    The hash covers embedder and text, so that vectors of other texts or models are never found: a stale file costs
    time, not truth.
    """
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as file:
            keys, vectors = file["keys"], file["vectors"].astype(np.float32)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        logger.warning("%s cannot be read and is left out: %s", path, error)
        return {}
    fits = keys.dtype == np.uint8 and keys.ndim == vectors.ndim == 2 and len(keys) == len(vectors)
    if not fits or keys.shape[1] != 32 or vectors.shape[1] != dimension:
        return {}
    norms = np.linalg.norm(vectors, axis=1)
    return {
        key.tobytes(): vector / norm
        for key, vector, norm in zip(keys, vectors, norms, strict=True)
        if np.isfinite(norm) and abs(norm - 1) < 0.01
    }
