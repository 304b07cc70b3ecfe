"""Embedders behind an endpoint or a package of the user's choice."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.retrieval.embedding import Vectors, clean, unit_vectors
from dspy_mama.settings import EmbedderSettings

_OPENAI: Final = "https://api.openai.com/v1"
_DEFAULT_MODEL: Final = "text-embedding-3-small"
"""The paper's embedding model."""
_KNOWN_DIMENSIONS: Final = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_BATCH: Final = 64
"""Texts a request: 64 chunks of 1,500 characters stay below the 300,000 tokens that the API takes at once."""
_RETRIES: Final = 5


class OpenAIEmbedder:
    """Any OpenAI-compatible embeddings endpoint. Safe to call from several threads."""

    def __init__(self, settings: EmbedderSettings) -> None:
        """Reads the key from the environment; connects on first use.

        Raises:
            DeclarationError: The environment variable that should hold the key is not set.
        """
        self._model = settings.model or _DEFAULT_MODEL
        self._base = (settings.api_base or _OPENAI).rstrip("/")
        self._key = _key(settings)
        self._lock = threading.Lock()
        self._client: Any = None
        self._dimension = settings.dimension
        if self._dimension is None and self._base == _OPENAI:
            self._dimension = _KNOWN_DIMENSIONS.get(self._model)

    @property
    def id(self) -> str:
        """Model, and the endpoint where it is not OpenAI's own."""
        return f"openai/{self._model}" + ("" if self._base == _OPENAI else f"@{self._base}")

    @property
    def dimension(self) -> int:
        """Length of a vector; asked of the model where it is not declared."""
        if self._dimension is None:
            self.embed_query("dimension")
        assert self._dimension is not None
        return self._dimension

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Returns unit vectors of shape (len(texts), dimension).

        Raises:
            DeclarationError: The endpoint refuses the key, the model or the request.
            ExecutionError: The endpoint cannot be reached or fails, after retries with backoff.
        """
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        parts = [self._request(texts[at : at + _BATCH]) for at in range(0, len(texts), _BATCH)]
        return np.concatenate(parts)

    def embed_query(self, text: str) -> Vectors:
        """Returns one unit vector of shape (dimension,); raises as `embed_documents`."""
        vector: Vectors = self._request([text])[0]
        return vector

    def _request(self, texts: Sequence[str]) -> Vectors:
        import openai

        client = self._connect()
        try:
            # Plain floats: the client's default, base64, is unknown to many compatible servers.
            reply = client.embeddings.create(
                model=self._model, input=[clean(text) for text in texts], encoding_format="float"
            )
            rows = sorted(reply.data, key=lambda row: row.index)
            vectors = unit_vectors([row.embedding for row in rows], len(texts), self._dimension, self.id)
        except (openai.AuthenticationError, openai.PermissionDeniedError):
            raise DeclarationError(f"{self.id}: {self._base} refuses the key; check embedder.api_key_env") from None
        except (openai.NotFoundError, openai.BadRequestError, openai.UnprocessableEntityError) as error:
            raise DeclarationError(f"{self.id}: {self._base} refuses the request: {_line(error)}") from None
        except openai.OpenAIError as error:
            raise ExecutionError(f"{self.id}: {self._base}: {_line(error)} (after {_RETRIES} retries)") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise ExecutionError(f"{self.id}: {self._base}: unreadable reply: {_line(error)}") from error
        self._dimension = vectors.shape[1]
        return vectors

    def _connect(self) -> Any:
        import openai

        with self._lock:
            if self._client is None:
                self._client = openai.OpenAI(api_key=self._key, base_url=self._base, max_retries=_RETRIES, timeout=60)
            return self._client


class SentenceTransformersEmbedder:
    """A model of the sentence-transformers package, loaded on first use. Safe to call from several threads."""

    def __init__(self, settings: EmbedderSettings) -> None:
        """Keeps the model's name.

        Raises:
            DeclarationError: No model is named, or the package is not installed.
        """
        from importlib.util import find_spec

        if not settings.model:
            raise DeclarationError("embedder.model: name the sentence-transformers model (a hub id or a folder)")
        if find_spec("sentence_transformers") is None:
            raise DeclarationError(
                "embedder=sentence_transformers needs its package: pip install sentence-transformers, "
                "or choose embedder=e5 or use, which need no download"
            )
        self._name, self._threads, self._expected = settings.model, settings.threads, settings.dimension
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def id(self) -> str:
        """Package and model."""
        return f"sentence-transformers/{self._name}"

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._expected or int(self._load().get_sentence_embedding_dimension())

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Returns unit vectors of shape (len(texts), dimension)."""
        return self._encode("encode_document", texts)

    def embed_query(self, text: str) -> Vectors:
        """Returns one unit vector of shape (dimension,)."""
        vector: Vectors = self._encode("encode_query", [text])[0]
        return vector

    def _encode(self, side: str, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        model = self._load()
        # Models with prompts for queries and documents need their own method; older versions have only `encode`.
        encode = getattr(model, side, model.encode)
        raw = encode([clean(text) for text in texts], show_progress_bar=False)
        return unit_vectors(raw, len(texts), self._expected, self.id)

    def _load(self) -> Any:
        from sentence_transformers import SentenceTransformer  # type: ignore[import-not-found]

        with self._lock:
            if self._model is None:
                try:
                    self._model = SentenceTransformer(self._name)
                except (OSError, ValueError) as error:
                    raise DeclarationError(f"{self.id}: the model cannot be loaded: {_line(error)}") from error
            return self._model


def _key(settings: EmbedderSettings) -> str:
    variable = settings.api_key_env
    if variable is None and settings.api_base is None:
        variable = "OPENAI_API_KEY"
    if variable is None:
        return "unused"  # a server of one's own; never OpenAI's key, which would leave for another host
    key = os.environ.get(variable, "").strip()
    if not key:
        raise DeclarationError(f"embedder=openai: the environment variable {variable} with the key is not set")
    return key


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
