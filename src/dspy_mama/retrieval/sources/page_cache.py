"""Fetched pages on disk: an interrupted fetch goes on from them, and unchanged pages are not sent again."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dspy_mama.core.ids import content_hash
from dspy_mama.retrieval.sources.page import Page


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A page and what is needed to ask whether it has changed.

    Attributes:
        page: The page.
        checked: POSIX time at which its server last vouched for it.
        etag: Validator, or "".
        modified: `Last-Modified` as sent, or "".
    """

    page: Page
    checked: float
    etag: str = ""
    modified: str = ""

    @property
    def validators(self) -> dict[str, str]:
        """Headers of a conditional request."""
        given = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in given.items() if value}


class PageCache:
    """One folder; a body and its headers per address. Entries appear complete or not at all."""

    def __init__(self, folder: Path) -> None:
        """Takes the folder; it is made when the first page is kept."""
        self.folder = folder

    def get(self, url: str) -> CachedPage | None:
        """Returns the kept page, or None where there is none or its files do not belong together."""
        facts, body = self._files(url)
        try:
            kept = json.loads(facts.read_text(encoding="utf-8"))
            content = body.read_bytes()
            if kept["url"] != url or kept["hash"] != _digest(content):
                return None
            page = Page(url, kept["final_url"], content, kept["content_type"], kept["charset"], kept["fetched"])
            return CachedPage(page, float(kept["checked"]), kept["etag"], kept["modified"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, entry: CachedPage) -> None:
        """Keeps a page.

        Raises:
            OSError: The folder cannot be written.
        """
        page = entry.page
        facts, body = self._files(page.url)
        facts.parent.mkdir(parents=True, exist_ok=True)
        kept = {name: getattr(page, name) for name in ("url", "final_url", "content_type", "charset", "fetched")}
        kept |= {"checked": entry.checked, "etag": entry.etag, "modified": entry.modified}
        _write(body, page.content)
        _write(facts, json.dumps(kept | {"hash": _digest(page.content)}, ensure_ascii=False).encode())

    def _files(self, url: str) -> tuple[Path, Path]:
        name = content_hash(url, 32)
        folder = self.folder / name[:2]
        return folder / f"{name}.json", folder / f"{name}.body"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(path: Path, content: bytes) -> None:
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
