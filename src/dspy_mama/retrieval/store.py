"""What an index says about itself and what it holds, whatever store keeps it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from dspy_mama.core.cases import DOMAINS, Passage
from dspy_mama.core.errors import DeclarationError, IndexStateError
from dspy_mama.core.ids import object_hash
from dspy_mama.core.wording import counted
from dspy_mama.retrieval.chunking import CHUNKER_VERSION, Chunk
from dspy_mama.retrieval.commands import IndexCommands
from dspy_mama.retrieval.corpus import Document
from dspy_mama.settings import CorpusSettings, RetrieverSettings

SPACE: Final = "cosine"


@dataclass(frozen=True, slots=True)
class IndexHeader:
    """How an index was made; kept in the collection's metadata and checked whenever it is opened.

    Attributes:
        embedder: Embedder id.
        dimension: Length of a vector.
        chunker: Version of the chunker.
        sizes: Chunk sizes and overlaps in characters, joined by `/`.
        corpus: Name of the corpus.
        documents: Number of documents.
        chunks: Number of chunks.
        revision: Hash of everything in it; two indexes of one revision are equal.
        state: `building` from the first write to the last, so that a killed build is noticed.
        space: Distance; always cosine.
        normalised: Vectors have length 1; always so.
    """

    embedder: str
    dimension: int
    chunker: str
    sizes: str
    corpus: str
    documents: int
    chunks: int
    revision: str
    state: Literal["building", "ready"] = "ready"
    space: str = SPACE
    normalised: bool = True

    def to_metadata(self) -> dict[str, str | int | bool]:
        """Returns the header as flat metadata."""
        return {f"mama_{key}": value for key, value in dataclasses.asdict(self).items()}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any] | None) -> IndexHeader | None:
        """Reads a header back; None where the collection has none or an incomplete one."""
        names = [f.name for f in dataclasses.fields(cls)]
        values = {name: (metadata or {}).get(f"mama_{name}") for name in names}
        return None if None in values.values() else cls(**values)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Entry:
    """One chunk as the store keeps it.

    Attributes:
        passage: The chunk with its document's facts, without score.
        document_hash: Hash of the whole document, to tell whether it has changed.
        embedding_text: What is embedded: the title in front of text that does not begin with it.
    """

    passage: Passage
    document_hash: str
    embedding_text: str = ""

    @property
    def hash(self) -> str:
        """Hash of all that is stored."""
        return object_hash([self.passage, self.document_hash], 16)

    def to_metadata(self) -> dict[str, str | bool]:
        """Returns flat metadata: every fact of the passage but its text, and one flag per domain."""
        facts = {f.name: getattr(self.passage, f.name) for f in dataclasses.fields(Passage)}
        for name in ("id", "text", "score", "domains"):
            del facts[name]
        flags = {f"domain_{domain}": domain in self.passage.domains for domain in DOMAINS}
        return {**facts, **flags, "document_hash": self.document_hash, "hash": self.hash}


def entry_of(document: Document, chunk: Chunk) -> Entry:
    """Returns the entry of a chunk."""
    names = ("title", "publisher", "url", "licence", "language", "jurisdiction", "domains", "collection", "accessed")
    facts = {name: getattr(document, name) for name in names}
    passage = Passage(id=chunk.id, text=chunk.text, document=document.id, section=chunk.section, **facts)
    titled = chunk.text.lstrip("# ").startswith(document.title)
    return Entry(passage, document.hash, chunk.text if titled else f"{document.title}\n{chunk.text}")


def passage_of(id: str, text: str, metadata: Mapping[str, Any]) -> Passage:
    """Reads a passage back from the store."""
    names = [f.name for f in dataclasses.fields(Passage) if f.name not in ("id", "text", "score", "domains")]
    facts: dict[str, Any] = {name: str(metadata.get(name) or "") for name in names}
    domains = tuple(domain for domain in DOMAINS if metadata.get(f"domain_{domain}"))
    return Passage(id=id, text=text, domains=domains, **facts)


def sizes_of(corpus: CorpusSettings) -> str:
    """Returns the chunk sizes as the header keeps them."""
    return "/".join(
        str(n) for n in (corpus.chunk_size, corpus.chunk_overlap, corpus.cjk_chunk_size, corpus.cjk_chunk_overlap)
    )


def index_folder(settings: RetrieverSettings) -> Path:
    """Returns the folder of the index: the given one, else one in the user's data folder."""
    if settings.path is not None:
        return Path(settings.path).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("dspy_mama", appauthor=False) / "index"


def stamp_file(settings: RetrieverSettings, name: str) -> Path:
    """Returns the file that holds the revision of the last finished build.

    Retrievers look at it before every search: Chroma's own file changes even when it is only opened.
    """
    return index_folder(settings) / f"{name}.revision"


def collection_name(settings: RetrieverSettings, corpus: CorpusSettings, embedder: str) -> str:
    """Returns the collection's name: the given one, else one made from corpus, embedder and chunk sizes.

    Different corpora, embedders and sizes thus live side by side, and a change of one never mixes vectors.

    Raises:
        DeclarationError: Chroma does not take the given name.
    """
    if settings.collection is not None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,510}[A-Za-z0-9]", settings.collection):
            raise DeclarationError(
                f"retriever.collection: {settings.collection!r} must be 3 to 512 letters, digits, `.`, `_` or `-`, "
                "with a letter or digit at both ends"
            )
        return settings.collection
    readable = re.sub(r"[^A-Za-z0-9]+", "-", f"{corpus.name}-{embedder.rpartition('/')[2]}").strip("-")[:60]
    path = None if corpus.folder is None else str(Path(corpus.folder).expanduser().absolute())
    return f"mama-{readable}-{object_hash([corpus.name, path, embedder, sizes_of(corpus)], 8)}"


def check_header(
    header: IndexHeader | None,
    name: str,
    embedder: str,
    dimension: int,
    corpus: CorpusSettings,
    commands: IndexCommands,
) -> IndexHeader:
    """Returns the header if the index fits what is asked of it.

    Raises:
        IndexStateError: It does not; the message names the command that repairs.
    """
    check_vectors(header, name, embedder, dimension, commands)
    assert header is not None
    if header.state != "ready":
        raise IndexStateError(
            f"index {name}: its build was interrupted or still runs: to go on from there, {commands.to_build}"
        )
    if (header.chunker, header.sizes) != (CHUNKER_VERSION, sizes_of(corpus)):
        raise IndexStateError(
            f"index {name}: cut with chunker {header.chunker}, sizes {header.sizes}; asked for {CHUNKER_VERSION}, "
            f"{sizes_of(corpus)}: {commands.to_build}"
        )
    return header


def check_vectors(
    header: IndexHeader | None, name: str, embedder: str, dimension: int, commands: IndexCommands
) -> None:
    """Refuses an index whose vectors are of another kind than the embedder's: they cannot be compared.

    Raises:
        IndexStateError: They cannot; the message names the command that repairs.
    """
    if header is None:
        raise IndexStateError(
            f"collection {name} was not made by this library (no header): set retriever.collection to another name, "
            f"or replace it: {commands.to_rebuild}"
        )
    if (header.embedder, header.dimension) != (embedder, dimension):
        raise IndexStateError(
            f"index {name} holds vectors of {header.embedder} ({counted(header.dimension, 'dimension')}), the embedder "
            f"is {embedder} ({dimension}): choose that embedder, another retriever.collection, or {commands.to_rebuild}"
        )
    if header.space != SPACE or not header.normalised:
        raise IndexStateError(f"index {name}: {SPACE} distance and unit vectors are needed: {commands.to_rebuild}")
