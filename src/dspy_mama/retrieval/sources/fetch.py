"""All sources of a corpus to one folder of documents; what fails is reported, the rest is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.retrieval.corpus import Document
from dspy_mama.retrieval.sources.files import file_documents
from dspy_mama.retrieval.sources.japanese_law import law_documents
from dspy_mama.retrieval.sources.page import SourceError
from dspy_mama.retrieval.sources.page_cache import PageCache
from dspy_mama.retrieval.sources.pages import page_documents
from dspy_mama.retrieval.sources.polite import PoliteClient
from dspy_mama.retrieval.sources.wikipedia import Wikipedia
from dspy_mama.retrieval.sources.writing import write
from dspy_mama.settings import CorpusSettings
from dspy_mama.settings.sources import PageSettings

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class FetchReport:
    """What a fetch did.

    Attributes:
        folder: Folder of the documents.
        written: Documents that are new or have changed.
        unchanged: Documents that were already there as they are.
        earlier: Other documents in the folder, from earlier fetches.
        faults: What gave no document, or not the whole of it, one line each.
        requests: Requests sent.
        cached: Pages taken from the cache.
        received: Bytes received.
        seconds: Wall time.
    """

    folder: str
    written: int
    unchanged: int
    earlier: int
    faults: tuple[str, ...]
    requests: int
    cached: int
    received: int
    seconds: float


def fetch_corpus(
    settings: CorpusSettings,
    *,
    client: PoliteClient | None = None,
    progress: Callable[[int, str], None] | None = None,
) -> FetchReport:
    """Fetches every source that the settings name and writes the documents as they come.

    A killed fetch is gone on with by the same call: pages that were read are in the cache. Documents of earlier
    fetches stay, also where their page now fails.

    Args:
        settings: Sources and the folder (`out`, else `path`).
        client: Client to use; None = one made from `settings.http`.
        progress: Called with (documents so far, title of the last).

    Raises:
        DeclarationError: No source or no folder is named, they are the same, or an optional library is not installed.
        ExecutionError: Nothing was fetched; the message names the faults.
    """
    if not settings.has_sources:
        raise DeclarationError(
            "no source to fetch: choose corpus=wikipedia, japanese_law, pages or files, or jurisdiction=jp, us, eu or "
            "de, and name what to read, such as corpus.wikipedia.titles=[Asthma]"
        )
    if settings.folder is None:
        raise DeclarationError("corpus.out: name the folder that the documents go to, such as corpus.out=evidence")
    folder = Path(settings.folder).expanduser().absolute()
    if settings.files is not None and Path(settings.files).expanduser().resolve() == folder.resolve():
        raise DeclarationError("corpus.files and corpus.out are the same folder: documents need a folder of their own")
    start = time.monotonic()
    seen: dict[str, bool] = {}
    faults: list[str] = []
    with client or PoliteClient(settings.http, PageCache(cache_folder(settings))) as opened:
        for found in _documents(settings, opened, folder):
            try:
                if isinstance(found, SourceError):
                    raise found
                if found.id in seen:
                    raise SourceError(found.url or found.title, f"left out: its id {found.id} is another document's")
                seen[found.id] = write(found, folder)
            except SourceError as fault:
                faults.append(str(fault))
                continue
            if progress is not None:
                progress(len(seen), found.title)
    if not seen:
        more = f"\n  ... and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        said = "".join(f"\n  {fault}" for fault in faults[:_SHOWN]) or " the sources hold nothing that can be read"
        raise ExecutionError(f"nothing was fetched:{said}{more}")
    written = sum(seen.values())
    earlier = sum(1 for path in folder.glob("*.md") if path.stem not in seen)
    traffic = opened.traffic
    return FetchReport(
        folder=str(folder),
        written=written,
        unchanged=len(seen) - written,
        earlier=earlier,
        faults=tuple(faults),
        requests=traffic.requests,
        cached=traffic.cached,
        received=traffic.received,
        seconds=time.monotonic() - start,
    )


def cache_folder(settings: CorpusSettings) -> Path:
    """Returns the folder of fetched pages."""
    if settings.http.cache is not None:
        return Path(settings.http.cache).expanduser().absolute()
    from platformdirs import user_cache_path

    return user_cache_path("dspy_mama", appauthor=False) / "pages"


def _documents(settings: CorpusSettings, client: PoliteClient, out: Path) -> Iterator[Document | SourceError]:
    pages = (*settings.pages, *(PageSettings(url) for url in settings.urls))
    sources = [
        Wikipedia(client, settings.wikipedia).documents(),
        law_documents(client, settings.japanese_law),
        page_documents(client, pages, settings.about),
    ]
    if settings.files is not None:
        sources.append(file_documents(settings.files, settings.about, out, settings.http.max_bytes))
    return chain.from_iterable(sources)
