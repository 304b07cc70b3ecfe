"""Evidence: documents, chunks, vectors, the Chroma index and the search. Importing it loads no framework."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dspy_mama.retrieval.build import BuildReport, build_index, cached_embedder, export_vectors
    from dspy_mama.retrieval.chunking import CHUNKER_VERSION, Chunk, chunk_document
    from dspy_mama.retrieval.commands import IndexCommands
    from dspy_mama.retrieval.corpus import Document, load_corpus
    from dspy_mama.retrieval.embedding import make_embedder
    from dspy_mama.retrieval.info import IndexInfo, index_info, opened_index, search_index
    from dspy_mama.retrieval.retriever import ChromaRetriever, NullRetriever, open_retriever
    from dspy_mama.retrieval.snapshot import Scope
    from dspy_mama.retrieval.way import in_words

_HOMES = {
    "build": ("BuildReport", "build_index", "cached_embedder", "export_vectors"),
    "chunking": ("CHUNKER_VERSION", "Chunk", "chunk_document"),
    "commands": ("IndexCommands",),
    "corpus": ("Document", "load_corpus"),
    "embedding": ("make_embedder",),
    "info": ("IndexInfo", "index_info", "opened_index", "search_index"),
    "retriever": ("ChromaRetriever", "NullRetriever", "open_retriever"),
    "snapshot": ("Scope",),
    "way": ("in_words",),
}

__all__ = [
    "CHUNKER_VERSION",
    "BuildReport",
    "ChromaRetriever",
    "Chunk",
    "Document",
    "IndexCommands",
    "IndexInfo",
    "NullRetriever",
    "Scope",
    "build_index",
    "cached_embedder",
    "chunk_document",
    "export_vectors",
    "in_words",
    "index_info",
    "load_corpus",
    "make_embedder",
    "open_retriever",
    "opened_index",
    "search_index",
]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first asked for."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Returns the public names."""
    return __all__
