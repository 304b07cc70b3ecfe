"""Documents, vectors and the index."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from dspy_mama.settings.sources import (
    AboutSettings,
    HttpSettings,
    JapaneseLawSettings,
    PageSettings,
    WikipediaSettings,
)
from dspy_mama.settings.strict import STRICT


@dataclass(frozen=True, config=STRICT)
class EmbedderSettings:
    """Which model turns texts into vectors.

    Attributes:
        kind: `e5` and `use` need no network; `openai` is any OpenAI-compatible endpoint.
        model: Model name for `openai` and `sentence_transformers`.
        api_base: Endpoint for `openai`; None = the provider's own.
        api_key_env: Environment variable that holds the key.
        dimension: Expected length of a vector; None = asked of the model.
        threads: CPU threads; None = the cores this process may use.
        cache: Folder of the vector cache; None = beside the index.
    """

    kind: Literal["e5", "use", "openai", "sentence_transformers"] = "e5"
    model: str | None = None
    api_base: str | None = None
    api_key_env: str | None = None
    dimension: int | None = Field(default=None, ge=1)
    threads: int | None = Field(default=None, ge=1)
    cache: str | None = None


@dataclass(frozen=True, config=STRICT)
class CorpusSettings:
    """Documents, where they come from, and how they are cut (paper A: 1,500 characters, 500 overlap).

    Attributes:
        name: Name of the corpus, part of its index's name.
        path: Folder of Markdown documents; None = `out`, and without it the corpus that ships with the project.
        out: Folder that `index fetch` writes documents to.
        wikipedia: Articles to fetch.
        japanese_law: Acts to fetch.
        pages: Web pages to fetch, each with its facts.
        urls: Web pages to fetch, with the facts of `about`.
        files: Folder of txt, md, html, pdf and docx files to turn into documents.
        about: What documents say of themselves where their source does not.
        http: How pages are asked for.
        chunk_size: Characters of a chunk.
        chunk_overlap: Characters shared by neighbours.
        cjk_chunk_size: The same for Japanese: 1,500 characters pass the embedder's 512 tokens.
        cjk_chunk_overlap: The same for Japanese.
    """

    name: str = "shipped"
    path: str | None = None
    chunk_size: int = Field(default=1500, ge=50)
    chunk_overlap: int = Field(default=500, ge=0)
    cjk_chunk_size: int = Field(default=750, ge=50)
    cjk_chunk_overlap: int = Field(default=250, ge=0)
    out: str | None = None
    wikipedia: WikipediaSettings = Field(default_factory=WikipediaSettings)
    japanese_law: JapaneseLawSettings = Field(default_factory=JapaneseLawSettings)
    pages: tuple[PageSettings, ...] = ()
    urls: tuple[str, ...] = ()
    files: str | None = None
    about: AboutSettings = Field(default_factory=AboutSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)

    @property
    def folder(self) -> str | None:
        """The folder of documents, or None for the shipped corpus."""
        return self.path if self.path is not None else self.out

    @property
    def has_sources(self) -> bool:
        """Whether there is anything to fetch."""
        wiki = self.wikipedia
        listed = (wiki.titles, wiki.searches, wiki.categories, self.japanese_law.laws, self.pages, self.urls)
        return any(listed) or self.files is not None

    def __post_init__(self) -> None:
        """Refuses an overlap that swallows its chunk, and an address that is none."""
        wrong = [url for url in self.urls if not url.startswith(("http://", "https://"))]
        if wrong:
            raise ValueError(f"urls: {wrong[0]!r} must start with http:// or https://")
        if self.chunk_overlap >= self.chunk_size or self.cjk_chunk_overlap >= self.cjk_chunk_size:
            raise ValueError("chunk overlap must be smaller than chunk size")


@dataclass(frozen=True, config=STRICT)
class RetrieverSettings:
    """The index and how it is asked.

    Attributes:
        mode: `persistent` keeps Chroma on disk, `server` asks a running `chroma run`.
        path: Folder of the persistent index; None = the user's data folder.
        host: Host of the server.
        port: Port of the server.
        collection: Name of the collection; None = made from the embedder and the chunking.
        top_k: Passages per domain (LangChain's default, which the paper used, is 4).
        evidence_tokens: Budget of evidence per domain in tokens (estimated from characters).
        min_score: Cosine similarity below which a passage is left out (not where `search=lexical`).
        search: By meaning (`dense`), by words (`lexical`, BM25, without the embedder), or by both (`hybrid`).
        fusion: How `hybrid` joins both: `scores` adds the share of the best BM25 score, times `lexical_weight`, to
            the similarity; `ranks` is reciprocal rank fusion.
        lexical_weight: Weight of words beside meaning where `fusion=scores`.
        glossary: Lists of terms in several languages, by which the search by words crosses languages: `shipped` (615
            medical, legal and ethical concepts in English and Japanese) and CSV files of your own; empty = none. A
            concept whose terms another one holds as well counts once.
        centred: Take each language's mean away before comparing, so that languages meet.
        diversity: Maximal marginal relevance: 0 = off, 1 = only unlike what was chosen before.
        languages: Documents that may be found: `all`, or those in the `query`'s script (all where there are none).
        sources: Collections that a domain may read, such as `{legal: [law, guidance]}`; a domain not named reads all.
    """

    mode: Literal["persistent", "server"] = "persistent"
    path: str | None = None
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=1, le=65535)
    collection: str | None = None
    top_k: int = Field(default=4, ge=1, le=100)
    evidence_tokens: int = Field(default=2000, ge=1)
    min_score: float = Field(default=-1.0, ge=-1, le=1)
    search: Literal["dense", "lexical", "hybrid"] = "hybrid"
    fusion: Literal["scores", "ranks"] = "scores"
    lexical_weight: float = Field(default=0.15, ge=0, le=1)
    glossary: tuple[str, ...] = ("shipped",)
    centred: bool = True
    diversity: float = Field(default=0.0, ge=0, le=1)
    languages: Literal["all", "query"] = "all"
    sources: dict[
        Literal["medical", "ethical", "legal"], tuple[Literal["law", "ethics", "guidance", "encyclopedic"], ...]
    ] = Field(default_factory=dict)
