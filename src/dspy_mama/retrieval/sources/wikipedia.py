"""Wikipedia (or any MediaWiki) through its API: titles, searches and categories to articles with their revision."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dspy_mama.retrieval.corpus import Document
from dspy_mama.retrieval.sources.page import Kind, Page, SourceError, TransientError
from dspy_mama.retrieval.sources.plain import clean, escape, one_line
from dspy_mama.retrieval.sources.polite import PoliteClient
from dspy_mama.settings.sources import WikipediaSettings

_KINDS: Final[tuple[Kind, ...]] = ("json",)
_BUSY: Final = frozenset({"maxlag", "ratelimited", "readonly", "internal_api_error_DBQueryError"})
"""Errors that the API reports with status 200 and that pass."""
_HEADING: Final = re.compile(r"^(={2,6})[ ]*(.+?)[ ]*\1[ ]*$")
_PREFIX: Final = re.compile(r"([a-z]{2}):(?=\S)(.+)", re.DOTALL)
_ODD: Final = (KeyError, IndexError, TypeError, AttributeError)
"""What reading an answer of another form raises."""
_COMMON: Final = {"action": "query", "format": "json", "formatversion": "2", "maxlag": "5"}
_ARTICLE: Final = {
    "prop": "extracts|info|revisions|pageprops",
    "explaintext": "1",
    "exsectionformat": "wiki",
    "exlimit": "1",
    "inprop": "url",
    "rvprop": "ids|timestamp",
    "ppprop": "disambiguation",
    "redirects": "1",
}


class Wikipedia:
    """Finds articles, then reads them one by one."""

    def __init__(self, client: PoliteClient, settings: WikipediaSettings) -> None:
        """Takes the client and what to look for."""
        self.client = client
        self.settings = settings
        self._seen: set[tuple[str, str]] = set()

    def documents(self) -> Iterator[Document | SourceError]:
        """Yields a document per article, or what is wrong with an entry; each article once."""
        count = 0
        for found in self._entries():
            if isinstance(found, SourceError):
                yield found
                continue
            language, title = found
            if count >= self.settings.max_pages:
                limit = f"stopped after {count} articles (corpus.wikipedia.max_pages)"
                yield SourceError(f"{language}:{title}", f"and what follows was left out: {limit}")
                return
            try:
                document = self._article(language, title)
            except SourceError as fault:
                yield fault
                continue
            except _ODD as error:
                yield SourceError(f"{language}:{title}", f"the API's answer has another form than expected ({error!r})")
                continue
            if document is not None:
                count += 1
                yield document

    def _entries(self) -> Iterator[tuple[str, str] | SourceError]:
        """Yields (language, title) of what is asked for."""
        finders = (
            (self.settings.titles, lambda _, title: iter((title,))),
            (self.settings.searches, self._search),
            (self.settings.categories, self._category),
        )
        for entries, find in finders:
            for entry in entries:
                prefixed = _PREFIX.fullmatch(entry.strip())
                language, name = prefixed.groups() if prefixed else (self.settings.language, entry.strip())
                try:
                    for title in find(language, name.strip()):
                        yield language, title
                except SourceError as fault:
                    yield fault
                except _ODD as error:
                    yield SourceError(entry, f"the API's answer has another form than expected ({error!r})")

    def _search(self, language: str, words: str) -> Iterator[str]:
        wanted = self.settings.per_search
        found = 0
        query = {"list": "search", "srsearch": words, "srnamespace": "0", "srlimit": str(min(wanted, 50))}
        for answer in self._pages(language, query):
            for hit in answer["search"][: wanted - found]:
                found += 1
                yield hit["title"]
            if found >= wanted:
                return
        if not found:
            raise SourceError(f"{language}:{words}", "the search finds no article")

    def _category(self, language: str, name: str) -> Iterator[str]:
        """Walks a category breadth first; categories may contain one another in circles."""
        level = [name if ":" in name else f"Category:{name}"]
        known = set(level)
        found = False
        for depth in range(self.settings.depth + 1):
            below: list[str] = []
            for category in level:
                kinds = "page|subcat" if depth < self.settings.depth else "page"
                query = {"list": "categorymembers", "cmtitle": category, "cmtype": kinds, "cmlimit": "500"}
                for answer in self._pages(language, query):
                    for member in answer["categorymembers"]:
                        found = True
                        if member["ns"] == 14:
                            below.append(member["title"])
                        elif member["ns"] == 0:
                            yield member["title"]
            level = [title for title in dict.fromkeys(below) if title not in known]
            known.update(level)
        if not found:
            raise SourceError(f"{language}:{name}", "the category has no members (is it spelled as on the wiki?)")

    def _article(self, language: str, title: str) -> Document | None:
        """Reads an article; None where it has been read under another title."""
        where = f"{language}:{title}"
        answer = next(self._pages(language, {**_ARTICLE, "titles": title}))
        page = answer["pages"][0]
        if page.get("missing") or page.get("invalid"):
            raise SourceError(where, "there is no such article")
        key = (language, str(page["pageid"]))
        if key in self._seen:
            return None
        self._seen.add(key)
        if "disambiguation" in page.get("pageprops", {}):
            raise SourceError(where, "is a list of articles of similar names: name one of them")
        text = to_markdown(page.get("extract") or "")
        if not text:
            raise SourceError(where, "the article holds no text")
        revision = page["revisions"][0]
        name = one_line(page["title"])
        index = self._endpoint(language).removesuffix("api.php") + "index.php"
        return Document(
            id=f"wikipedia-{language}-{page['pageid']}",
            title=name,
            publisher="Wikipedia contributors",
            # The revision that was read: the article itself goes on changing.
            url=f"{index}?oldid={revision['revid']}",
            licence=self.settings.licence,
            language=language,
            jurisdiction=self.settings.jurisdiction,
            domains=self.settings.domains,
            collection="encyclopedic",
            text=f"# {name}\n\n{text}",
            accessed=answer["fetched"],
            references=(f"{page['fullurl']} (revision {revision['revid']} of {revision['timestamp'][:10]})",),
        )

    def _endpoint(self, language: str) -> str:
        return self.settings.endpoint or f"https://{language}.wikipedia.org/w/api.php"

    def _pages(self, language: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yields the answers to a query, following its continuation."""
        more: dict[str, str] = {}
        while True:
            page = self.client.get(
                self._endpoint(language), {**_COMMON, **query, **more}, kinds=_KINDS, api=True, check=_check
            )
            answer = json.loads(page.content)
            yield {**answer["query"], "fetched": page.fetched}
            following = {name: str(value) for name, value in (answer.get("continue") or {}).items()}
            if not following or following == more:
                return
            more = following


def _check(page: Page) -> None:
    """Refuses an answer that is no result, before it is kept."""
    try:
        answer = json.loads(page.content)
    except ValueError:
        raise TransientError("the answer is no JSON") from None
    error = answer.get("error") if isinstance(answer, dict) else {"code": "shape", "info": "not an object"}
    if error:
        said = f"the API answers {error.get('code')}: {one_line(str(error.get('info')))[:200]}"
        raise TransientError(said) if error.get("code") in _BUSY else SourceError(page.url, said)
    if not isinstance(answer.get("query"), dict):
        raise SourceError(page.url, "the API's answer holds no result")


def to_markdown(extract: str) -> str:
    """Returns a plain-text extract with its headings marked; sections without text (such as references) go."""
    lines: list[str] = []
    waiting: list[tuple[int, str]] = []
    for line in clean(extract).splitlines():
        heading = _HEADING.match(line)
        if heading:
            level = len(heading.group(1))
            waiting = [entry for entry in waiting if entry[0] < level] + [(level, heading.group(2))]
        elif line.strip():
            lines += [f"\n{'#' * level} {name}\n" for level, name in waiting]
            waiting = []
            lines.append(escape(line))
        else:
            lines.append("")
    return clean("\n".join(lines))
