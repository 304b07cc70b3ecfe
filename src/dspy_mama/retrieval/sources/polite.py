"""HTTP as a good guest: one request at a time, with pauses, retries, limits, robots.txt and a cache."""

from __future__ import annotations

import datetime
import logging
import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import httpx

from dspy_mama.retrieval.sources.page import Kind, Page, SourceError, TransientError, kind_of
from dspy_mama.retrieval.sources.page_cache import CachedPage, PageCache
from dspy_mama.retrieval.sources.robots import Robots
from dspy_mama.retrieval.sources.transfer import Traffic, Transfer, status_text
from dspy_mama.settings.sources import HttpSettings

logger = logging.getLogger(__name__)

_LOST_HOST: Final = 3
"""Pages in a row that a host did not answer, after which its other pages are not tried."""


class PoliteClient:
    """Fetches pages; every fault is a `SourceError` that names the page. For use in one thread."""

    def __init__(
        self,
        settings: HttpSettings,
        cache: PageCache,
        *,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Opens the client.

        Args:
            settings: Limits and manners.
            cache: Where pages are kept.
            sleep: Waits for seconds.
            now: POSIX time.
        """
        self.settings = settings
        self._cache, self._sleep, self._now = cache, sleep, now
        self._transfer = Transfer(settings, sleep, now)
        self._robots = Robots(self._rules)
        self._lost: dict[str, int] = {}

    @property
    def traffic(self) -> Traffic:
        """What the client has done so far."""
        return self._transfer.traffic

    def __enter__(self) -> PoliteClient:
        """Returns itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the connections."""
        self._transfer.close()

    def get(
        self,
        url: str,
        params: Mapping[str, str] | None = None,
        *,
        kinds: Collection[Kind],
        api: bool = False,
        check: Callable[[Page], None] | None = None,
    ) -> Page:
        """Returns a page, from the cache where it is young enough.

        Args:
            url: http(s) address.
            params: Query.
            kinds: Kinds of page that the caller can read.
            api: An interface for programs, to which robots.txt does not apply.
            check: Looks at a new page before it is kept; may raise `TransientError` or `SourceError`.

        Raises:
            SourceError: The page cannot be had.
        """
        address = str(httpx.URL(url, params=dict(params)) if params else httpx.URL(url))
        kept = self._cache.get(address)
        if kept is not None and self._now() - kept.checked < self.settings.max_age * 86_400:
            self.traffic.cached += 1
            return kept.page
        if self.settings.robots and not api and not self._robots.allow(address):
            raise SourceError(address, "robots.txt asks programs not to read it (corpus.http.robots)")

        def read() -> Page:
            entry = self._conditional(address, kept)
            kind = kind_of(entry.page)
            if kind is None or kind not in kinds:
                found = entry.page.content_type or "of no declared type"
                raise SourceError(address, f"is {found}; expected {' or '.join(kinds)}")
            if kind == "html" and urlsplit(address).path.lower().endswith((".pdf", ".docx")):
                raise SourceError(address, "the server sent a web page in place of the file")
            if check is not None:
                check(entry.page)
            self._cache.put(entry)
            return entry.page

        return self._persist(address, read)

    def _persist(self, address: str, read: Callable[[], Page]) -> Page:
        """Calls `read` until it answers, waiting as long as the server asks for or longer each time."""
        host = urlsplit(address).netloc
        if self._lost.get(host, 0) >= _LOST_HOST:
            raise SourceError(address, f"not tried: {host} has not answered for {_LOST_HOST} pages")
        for attempt in range(self.settings.retries + 1):
            try:
                page = read()
            except TransientError as fault:
                last = fault
            else:
                self._lost.pop(host, None)
                return page
            wait = last.wait if last.wait is not None else min(2.0**attempt, 60.0) * random.uniform(1, 1.25)
            if wait > self.settings.max_wait:
                raise SourceError(
                    address,
                    f"{last.reason}; the server asks to wait {wait:.0f} s, more than corpus.http.max_wait: run the "
                    "same command again later",
                )
            if attempt < self.settings.retries:
                logger.info("%s: %s; trying again in %.1f s", address, last.reason, wait)
                self._sleep(wait)
        if last.lost:
            self._lost[host] = self._lost.get(host, 0) + 1
        raise SourceError(address, f"{last.reason} ({self.settings.retries + 1} tries)")

    def _conditional(self, address: str, kept: CachedPage | None) -> CachedPage:
        response, content = self._transfer.send(address, kept.validators if kept else {}, self._robots.delay(address))
        today = datetime.datetime.fromtimestamp(self._now(), datetime.UTC).date().isoformat()
        if response.status_code == 304 and kept is not None:
            self.traffic.cached += 1
            return replace(kept, page=replace(kept.page, fetched=today), checked=self._now())
        if response.status_code != 200:
            anonymous = response.status_code == 403 and not self.settings.contact
            hint = "; it may want to know whom to reach: set corpus.http.contact" if anonymous else ""
            raise SourceError(address, f"the server answers {status_text(response)}{hint}")
        if not content.strip():
            raise SourceError(address, "the page is empty")
        headers = response.headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        page = Page(address, str(response.url), content, kind, response.charset_encoding or "", today)
        return CachedPage(page, self._now(), headers.get("etag", ""), headers.get("last-modified", ""))

    def _rules(self, url: str) -> str:
        """Returns the text of a robots.txt; "" where the host has none."""

        def read() -> Page:
            response, content = self._transfer.send(url, {})
            if response.status_code != 200:
                content = b""
            return Page(url, str(response.url), content, "text/plain", "", "")

        return self._persist(url, read).content.decode("utf-8", "replace")
