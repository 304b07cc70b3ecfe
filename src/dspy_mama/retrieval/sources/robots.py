"""robots.txt (RFC 9309): which pages of a host a program may read, and how slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from dspy_mama.retrieval.sources.page import SourceError

AGENT: Final = "dspy-mama"
"""The name by which robots.txt and server logs know this program."""


class Robots:
    """Reads each host's robots.txt once."""

    def __init__(self, fetch: Callable[[str], str]) -> None:
        """Takes what returns the text of a robots.txt ("" = there is none, everything is allowed)."""
        self._fetch = fetch
        self._known: dict[str, RobotFileParser] = {}
        self._unread: dict[str, str] = {}

    def allow(self, url: str) -> bool:
        """Tells whether a page may be read.

        Raises:
            SourceError: The host has rules, or a server at fault, that cannot be read: then nothing is allowed.
        """
        root = _root(url)
        if root not in self._known and root not in self._unread:
            rules = RobotFileParser()
            try:
                rules.parse(self._fetch(f"{root}/robots.txt").splitlines())
                self._known[root] = rules
            except SourceError as fault:
                self._unread[root] = fault.reason
        if root in self._unread:
            raise SourceError(url, f"not asked for, since {root}/robots.txt cannot be read: {self._unread[root]}")
        return self._known[root].can_fetch(AGENT, url)

    def delay(self, url: str) -> float:
        """Returns the seconds between requests that the host asks for; 0 where it says nothing or was not asked."""
        rules = self._known.get(_root(url))
        said = rules.crawl_delay(AGENT) if rules else None
        return float(said) if said is not None else 0.0


def _root(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
