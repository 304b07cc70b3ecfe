"""The report opens from a file, without network, and treats every text in it as untrusted."""

from html.parser import HTMLParser

import pytest

from dspy_mama.reporting import render_report, summarise, write_report
from dspy_mama.reporting.html import web_address

ATTACKS = [
    "<script>alert(1)</script>",
    "</div></details><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "{{ 7*7 }}{% raw %}",
    "\x00\x1b[31m\ud800 \u202egnp.exe",
]


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def render(records, **options):
    return render_report(records, summarise(records, resamples=20), **options)


@pytest.mark.parametrize("attack", ATTACKS)
def test_untrusted_text_stays_text_wherever_it_stands(make_record, attack):
    record = make_record(1, (True, False, False), dict.fromkeys(("initial", "verification"), (True, None, False)))
    record |= {"id": attack, "question": attack, "answer": attack, "language": attack, "source": attack}
    record["notes"] = {"medical": attack}
    record["routing"] |= {"specialty": attack, "source": attack, "origin": attack}
    record["models"] = {"judge": attack}
    for row in record["phases"].values():
        for own in row.values():
            own |= {"reason": attack, "findings": attack, "error": attack, "raw": attack, "role": attack}
            for passage in own.get("passages", ()):
                passage |= {"title": attack, "section": attack, "url": attack, "collection": attack, "language": attack}
    page = Page(render([record], title=attack, context=[attack]))
    assert len(page.all("script")) == 1
    assert page.all("svg") == []
    assert all(set(image) == {"src", "alt"} for image in page.all("img"))
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert page.all("a") == [{"class": "skip", "href": "#list"}]
    if "7*7" in attack:
        assert attack in "".join(page.text)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://example.org/a?b=1", True),
        (" http://example.org ", True),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt:alert(1)", False),
        ("\tjavascript:alert(1)", False),
        ("data:text/html,<script>", False),
        ("file:///etc/passwd", False),
        ("//example.org", False),
        ("https://[bad", False),
        ("", False),
        (None, False),
    ],
)
def test_only_web_addresses_become_links(url, kept):
    assert (web_address(url) is not None) == kept


def test_a_passage_shows_what_a_reader_needs_to_check_it(make_record, make_passage):
    record = make_record(1, (True, False, False), {"verification": (True, False, False)})
    passage = make_passage(3, cited=True, licence="CC-BY-4.0")
    record["phases"]["verification"]["legal"]["passages"] = [passage]
    page = Page(render([record]))
    shown = " ".join("".join(page.text).split())
    assert passage["url"] in [link.get("href") for link in page.all("a")]
    assert f"{passage['title']}, Article 17" in shown
    assert all(text in shown for text in ("read on 2025-05-01", "CC-BY-4.0", passage["id"]))


def test_an_unsafe_address_is_shown_as_text(make_record, make_passage):
    record = make_record(1, (True,) * 3, {"verification": (True,) * 3})
    record["phases"]["verification"]["legal"]["passages"] = [make_passage(3, url="javascript:alert(1)")]
    page = Page(render([record]))
    assert "javascript:alert(1)" in "".join(page.text)
    assert not any("javascript" in str(link.get("href")) for link in page.all("a"))


def test_nothing_is_fetched_from_anywhere(records):
    page = Page(render(records[:3]))
    for tag, attrs in page.tags:
        for name in ("src", "srcset", "action", "data", "poster"):
            assert str(attrs.get(name, "data:")).startswith("data:"), (tag, attrs)
    assert page.all("link") == [{"rel": "icon", "href": "data:,"}]
    policy = next(
        meta["content"] for meta in page.all("meta") if "content" in meta and "default-src" in meta["content"]
    )
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


def test_summary_comes_first_then_tables_then_pairs_with_everything_about_them(records):
    text = render(records[:4], title="Run 7", context=["Data: sample"])
    order = [
        text.index(part)
        for part in ("They are no substitute", 'id="summary"', "<caption>", 'id="list"', 'class="pair"')
    ]
    assert order == sorted(order)
    words = "".join(Page(text).text)
    for part in ("Run 7", "Data: sample", "Take an aspirin every hour", "Neurologist", "Article 17", "not verified"):
        assert part in words
    assert words.count("Evidence shown to MA2") == 12


def test_controls_are_hidden_without_javascript_and_pairs_are_native_details(records):
    page = Page(render(records[:2]))
    assert "hidden" in page.all("form")[0]
    assert len([d for d in page.all("details") if d.get("class") == "pair"]) == 2
    labelled = page.all("label")
    assert len(labelled) == len(page.all("input")) + len(page.all("select"))


def test_a_run_without_stored_texts_says_so(records):
    for record in records[:2]:
        del record["question"], record["answer"]
    assert "were not stored" in render(records[:2])


def test_an_unscored_verdict_shows_its_reason_and_raw_text(records):
    text = render([records[5]])
    assert "Unscored (parse): no readable label in field &#39;risk&#39;" in text
    assert "I am not sure &lt;b&gt;really&lt;/b&gt;" in text
    assert "needs review" in text


def test_the_embedded_models_labels_carry_their_warning(records):
    records[0]["models"]["judge"] = "smollm2-135m-instruct"
    assert 'class="banner"' in render(records[:1])
    assert 'class="banner"' not in render(records[1:2])


def test_126_pairs_stay_well_under_five_megabytes(records, tmp_path):
    path = write_report(tmp_path / "report.html", records, summarise(records, resamples=50))
    assert path.stat().st_size < 2_000_000
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_run_without_gold_or_pairs_can_be_reported(records):
    for record in records[:2]:
        record["gold"] = {}
    assert "<img" not in render(records[:2])
    assert "pairs audited" in render([])


def test_an_undetermined_verdict_is_marked_undetermined_and_not_wrong(make_record):
    record = make_record(1, (True, True, True), {"initial": (None, False, True)})
    pair = next(d for d in Page(render([record])).all("details") if d.get("class") == "pair")
    assert (pair["data-medical"], pair["data-wrong"], pair["data-errors"]) == ("undetermined", "ethical", "1")


def test_what_a_person_decided_is_shown_beside_the_verdict_and_can_be_filtered(make_record):
    plain = make_record(1, (True, False, False), {"initial": (True, False, False)})
    mended = make_record(2, (True, False, False), {"initial": (False, False, False)})
    mended["override"] = {
        "medical": {"risk": True, "reason": "The <b>dose</b> is wrong.", "by": "nurse"},
        "legal": "safe",
    }
    page = render([plain, mended])
    assert page.count("Human override:") == 2
    assert "by nurse" in page
    assert "The &lt;b&gt;dose&lt;/b&gt; is wrong." in page
    assert [p["data-override"] for p in Page(page).all("details") if "data-override" in p] == ["0", "1"]
    assert 'name="override"' in page
    assert 'name="override"' not in render([plain])


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("What now?", "the question"),
        ("Rest.", "the answer"),
        ("What now?\nRest.", "question and answer"),
        ("What now?\n<b>claim</b>", "What now?\n<b>claim</b>"),
    ],
)
def test_a_pair_says_what_evidence_was_searched_with(make_record, query, shown):
    said = dict.fromkeys(("initial", "verification"), (True, False, False))
    record = make_record(1, (True, False, False), said) | {"question": "What now?", "answer": "Rest."}
    record["phases"]["verification"]["legal"] |= {"query": query, "passages": [], "citations": []}
    text = " ".join("".join(Page(render([record])).text).split())
    assert f"Evidence searched with: {' '.join(shown.split())}. No passage was found." in text


PASSAGE = {"document": "d", "language": "ja", "collection": "law", "accessed": "2026-11-30", "score": 0.883}


def test_a_pair_says_for_every_domain_what_was_found_and_what_of_it_was_cited(make_record):
    said = dict.fromkeys(("initial", "verification"), (True, False, False))
    record = make_record(1, (True, False, False), said) | {"question": "何ですか", "answer": "はい。"}
    checks = record["phases"]["verification"]
    found = [
        PASSAGE | {"id": "d#1", "title": "医師法", "section": "第17条", "url": "https://example.org/d", "cited": False},
        PASSAGE | {"id": "d#2", "title": "薬機法", "section": "", "url": "javascript:alert(1)", "cited": True},
    ]
    asked = {"query": "何ですか"}
    checks["medical"] |= asked | {"passages": found, "citations": ["d#2"], "invalid_citations": 1}
    uncited = [passage | {"cited": False} for passage in found]
    checks["ethical"] |= asked | {"passages": uncited, "citations": [], "invalid_citations": 2}
    checks["legal"] |= asked | {"passages": [], "citations": [], "invalid_citations": 0}
    page = Page(render([record]))
    text = " ".join("".join(page.text).split())
    medical, ethical, legal = (
        text.split(f"{name} risk Final:")[1].split(" risk Final:")[0] for name in ("Medical", "Ethical", "Legal")
    )
    first = "[1] 医師法, 第17条 score 0.88, law, ja, read on 2026-11-30, d#1"
    second = "[2] 薬機法 score 0.88, law, ja, read on 2026-11-30, javascript:alert(1), d#2"
    assert f"{first} {second} cited" in medical
    assert "1 citation named no passage that was shown, and was dropped." in medical
    assert f"{first} {second} None of them was cited." in ethical
    assert "2 citations named no passage that was shown, and were dropped." in ethical
    assert "No passage was found." in legal
    assert "cited" not in legal
    links = [link["href"] for link in page.all("a")]
    assert links.count("https://example.org/d") == 2
    assert not [link for link in links if link.startswith("javascript:")]
    assert len([item for item in page.all("li") if item.get("class") == "cited"]) == 1
