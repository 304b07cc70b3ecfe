"""A small MediaWiki: the API's answers in its real form (format version 2), with continuation and its own errors."""

from __future__ import annotations

import json
from typing import Any

from retrieval.web_server import Answer, Asked

ARTICLES = {
    "Asthma": (
        11,
        "Asthma is a disease of the airways.\n\n\n== Signs ==\n\n=== At night ===\nWheezing wakes the patient.\n"
        "# not a heading\n\n\n== References ==\n\n\n== External links ==\n",
    ),
    "Health in Testland": (12, "Care in Testland is paid for by all.\n\n== Insurance ==\nEveryone is insured."),
    "Testland Medical Act": (13, "The act says who may test."),
    "Deep article": (14, "Far below."),
    "医師法": (
        15,
        "医師法は、医師の資格と業務を定める日本の法律である。\n\n== 内容 ==\n医師でなければ、医業をなしてはならない。",
    ),
}
CATEGORIES = {
    "Category:Health in Testland": ["Health in Testland", "Category:Law of Testland"],
    "Category:Law of Testland": ["Testland Medical Act", "Category:Deep", "Category:Health in Testland"],
    "Category:Deep": ["Deep article", "File:Picture.png"],
}
REDIRECTS = {"Bronchial asthma": "Asthma"}


class Wiki:
    """Answers `/w/api.php`; `before` may answer in its place (return None to let it through)."""

    def __init__(self) -> None:
        self.revision = 500
        self.before: Any = None
        self.queries: list[dict[str, str]] = []

    def __call__(self, asked: Asked) -> Answer:
        query = asked.query
        self.queries.append(query)
        early = self.before(query) if self.before else None
        if early is not None:
            return early
        if query.get("list") == "search":
            return _json(self._search(query))
        if query.get("list") == "categorymembers":
            return _json(self._members(query))
        return _json({"batchcomplete": True, "query": {"pages": [self._page(query["titles"], asked)]}})

    def _page(self, title: str, asked: Asked) -> dict[str, Any]:
        title = REDIRECTS.get(title, title)
        if title == "Test (disambiguation)":
            facts = {"pageid": 77, "title": title, "pageprops": {"disambiguation": ""}, "extract": "may mean"}
        elif title not in ARTICLES:
            return {"ns": 0, "title": title, "missing": True}
        else:
            number, text = ARTICLES[title]
            facts = {"pageid": number, "title": title, "extract": text}
        address = f"http://{asked.headers['Host']}/wiki/{title.replace(' ', '_')}"
        return {"ns": 0, "fullurl": address, "canonicalurl": address, **facts} | {
            "revisions": [{"revid": self.revision, "parentid": 1, "timestamp": "2026-11-01T10:00:00Z"}]
        }

    def _search(self, query: dict[str, str]) -> dict[str, Any]:
        found = [title for title in ARTICLES if query["srsearch"].lower() in title.lower()]
        return {"batchcomplete": True, "query": {"search": [{"ns": 0, "title": title} for title in found]}}

    def _members(self, query: dict[str, str]) -> dict[str, Any]:
        """One member an answer, so that the continuation is followed."""
        spaces = {"Category": 14, "File": 6}
        members = [
            {"ns": spaces.get(name.split(":")[0], 0), "title": name} for name in CATEGORIES.get(query["cmtitle"], [])
        ]
        if "subcat" not in query["cmtype"]:
            members = [member for member in members if member["ns"] != 14]
        start = int(query.get("cmcontinue", "0"))
        answer: dict[str, Any] = {"query": {"categorymembers": members[start : start + 1]}}
        if start + 1 < len(members):
            answer["continue"] = {"cmcontinue": str(start + 1), "continue": "-||"}
        return answer


def error(code: str) -> Answer:
    """What the API answers, with status 200, when it cannot."""
    return _json({"error": {"code": code, "info": f"about {code}"}, "docref": "See the documentation"})


def _json(body: Any) -> Answer:
    return 200, {"Content-Type": "application/json; charset=utf-8"}, json.dumps(body).encode()
