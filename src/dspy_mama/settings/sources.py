"""Where documents come from, and how politely they are fetched."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from dspy_mama.settings.strict import STRICT

SourceDomain = Literal["medical", "ethical", "legal"]
SourceJurisdiction = Literal["JP", "US", "EU", "DE", "INT"]
SourceCollection = Literal["law", "ethics", "guidance", "encyclopedic"]
_ALL: Final[tuple[SourceDomain, ...]] = ("medical", "ethical", "legal")


@dataclass(frozen=True, config=STRICT)
class HttpSettings:
    """How pages are asked for: one at a time.

    Attributes:
        contact: Address or page at which the operator of a server can reach you; part of the user agent, which
            Wikimedia and others ask for.
        timeout: Seconds without a byte after which a request has failed.
        deadline: Seconds after which a page has failed even if bytes still arrive.
        retries: Further tries after a timeout, a cut connection, 408, 425, 429 or 5xx.
        max_wait: Longest wait in seconds that a server may ask for; a page that asks for more has failed.
        delay: Least seconds between two requests to the same host; a longer crawl delay in robots.txt is kept.
        max_bytes: Largest page, unpacked.
        max_redirects: Redirects that are followed.
        robots: Keep to robots.txt (an API is asked as its own rules say).
        cache: Folder of fetched pages; None = one in the user's cache folder.
        max_age: Days for which a cached page is used without asking its server.
    """

    contact: str | None = None
    timeout: float = Field(default=30.0, gt=0)
    deadline: float = Field(default=300.0, gt=0)
    retries: int = Field(default=4, ge=0, le=20)
    max_wait: float = Field(default=120.0, ge=0)
    delay: float = Field(default=1.0, ge=0)
    max_bytes: int = Field(default=50_000_000, ge=1)
    max_redirects: int = Field(default=5, ge=0, le=50)
    robots: bool = True
    cache: str | None = None
    max_age: float = Field(default=7.0, ge=0)


@dataclass(frozen=True, config=STRICT)
class AboutSettings:
    """What documents say of themselves where their source does not.

    Attributes:
        publisher: Who published them; None = the host, or "local file".
        licence: SPDX id or name; None = what the page states, else "not stated".
        language: ISO 639-1; None = what the page states, else Japanese where there is kana, else English.
        jurisdiction: Whose law or practice they describe; `INT` = no single one.
        domains: Risk domains for which they are evidence.
        collection: Kind of source.
    """

    publisher: str | None = None
    licence: str | None = None
    language: str | None = Field(default=None, pattern="^[a-z]{2}$")
    jurisdiction: SourceJurisdiction = "INT"
    domains: tuple[SourceDomain, ...] = Field(default=_ALL, min_length=1)
    collection: SourceCollection = "guidance"


@dataclass(frozen=True, config=STRICT)
class PageSettings:
    """One page (html, pdf, docx or text) on the web; a field that is None is taken from `corpus.about`.

    Attributes:
        url: http(s) address.
        title: Title; None = the page's own.
        publisher: As in `AboutSettings`.
        licence: As in `AboutSettings`.
        language: As in `AboutSettings`.
        jurisdiction: As in `AboutSettings`.
        domains: As in `AboutSettings`.
        collection: As in `AboutSettings`.
    """

    url: str = Field(pattern=r"^https?://[^\s<>\"']+$")
    title: str | None = None
    publisher: str | None = None
    licence: str | None = None
    language: str | None = Field(default=None, pattern="^[a-z]{2}$")
    jurisdiction: SourceJurisdiction | None = None
    domains: tuple[SourceDomain, ...] | None = Field(default=None, min_length=1)
    collection: SourceCollection | None = None


@dataclass(frozen=True, config=STRICT)
class WikipediaSettings:
    """Articles through the MediaWiki API. An entry may name another language: `ja:医師法`.

    Attributes:
        language: Language of entries that name none.
        titles: Articles.
        searches: Keywords, such as `Health in Japan`.
        categories: Categories, such as `Health law in Japan`.
        depth: Levels of subcategories below each category.
        per_search: Articles taken of each search, best first.
        max_pages: Most articles of all.
        jurisdiction: Whose practice the articles describe.
        domains: Risk domains for which they are evidence.
        licence: Licence of the texts.
        endpoint: Address of the `api.php` of a MediaWiki; None = Wikipedia in the entry's language.
    """

    language: str = Field(default="en", pattern="^[a-z]{2}$")
    titles: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    depth: int = Field(default=1, ge=0, le=10)
    per_search: int = Field(default=20, ge=1, le=500)
    max_pages: int = Field(default=200, ge=1)
    jurisdiction: SourceJurisdiction = "INT"
    domains: tuple[SourceDomain, ...] = Field(default=_ALL, min_length=1)
    licence: str = "CC-BY-SA-4.0"
    endpoint: str | None = Field(default=None, pattern=r"^https?://\S+/api\.php$")


@dataclass(frozen=True, config=STRICT)
class JapaneseLawSettings:
    """Acts as Japanese Law Translation (Ministry of Justice) shows them.

    Attributes:
        laws: Numbers from the addresses (`.../laws/view/3213`); `ja:3213` is the Japanese text.
        language: Text of entries that name none: `en` or `ja`.
        domains: Risk domains for which they are evidence.
        licence: Terms under which the site's texts are used.
        base: Address of the site.
    """

    laws: tuple[str, ...] = ()
    language: Literal["en", "ja"] = "en"
    domains: tuple[SourceDomain, ...] = Field(default=("medical", "legal"), min_length=1)
    licence: str = "Japanese Law Translation terms of use"
    base: str = Field(default="https://www.japaneselawtranslation.go.jp", pattern=r"^https?://\S+$")
