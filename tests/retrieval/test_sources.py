"""Sources to documents: Wikipedia, Japanese Law Translation, pages, folders."""

import pytest

from dspy_mama.retrieval.corpus import Document, parse_document
from dspy_mama.retrieval.sources.files import file_documents
from dspy_mama.retrieval.sources.japanese_law import law_documents
from dspy_mama.retrieval.sources.page import SourceError
from dspy_mama.retrieval.sources.pages import page_documents
from dspy_mama.retrieval.sources.wikipedia import Wikipedia
from dspy_mama.retrieval.sources.writing import render, write
from dspy_mama.settings.sources import AboutSettings, JapaneseLawSettings, PageSettings, WikipediaSettings
from retrieval.papers import LAW_EN, LAW_JA, docx, pdf
from retrieval.web_server import html
from retrieval.wiki import Wiki, error


def split(found):
    found = list(found)
    documents = [item for item in found if isinstance(item, Document)]
    assert all(parse_document(render(document)) == document for document in documents)
    return documents, [str(item) for item in found if isinstance(item, SourceError)]


@pytest.fixture
def wiki(web):
    web.pages["/w/api.php"] = Wiki()
    return web.pages["/w/api.php"]


@pytest.fixture
def read(web, wiki, make_client):
    """Reads from the wiki with the given settings."""

    def run(client=None, **settings):
        chosen = WikipediaSettings(endpoint=web.url("/w/api.php"), **settings)
        return split(Wikipedia(client or make_client(), chosen).documents())

    return run


def test_an_article_keeps_its_sections_revision_licence_and_date(web, read, make_client):
    (asthma,), faults = read(make_client(now=lambda: 1_800_000_000.0), titles=("Asthma",))
    assert faults == []
    assert asthma.text == (
        "# Asthma\n\nAsthma is a disease of the airways.\n\n## Signs\n\n### At night\n\nWheezing wakes the patient.\n"
        "\\# not a heading"
    )
    assert asthma.url == web.url("/w/index.php?oldid=500")
    assert asthma.references == (f"{web.url('/wiki/Asthma')} (revision 500 of 2026-11-01)",)
    assert (asthma.id, asthma.licence, asthma.accessed) == ("wikipedia-en-11", "CC-BY-SA-4.0", "2027-01-15")
    assert (asthma.collection, asthma.language, asthma.publisher) == ("encyclopedic", "en", "Wikipedia contributors")


def test_an_entry_may_name_another_language(read):
    (law,), _ = read(titles=("ja:医師法",))
    assert (law.id, law.language, law.title) == ("wikipedia-ja-15", "ja", "医師法")


@pytest.mark.parametrize(
    ("depth", "titles"),
    [
        (0, ["Health in Testland"]),
        (1, ["Health in Testland", "Testland Medical Act"]),
        (5, ["Health in Testland", "Testland Medical Act", "Deep article"]),
    ],
)
def test_a_category_is_walked_to_the_depth_asked_for_and_never_in_circles(read, depth, titles):
    documents, faults = read(categories=("Health in Testland",), depth=depth)
    assert [document.title for document in documents] == titles
    assert faults == []


def test_a_search_finds_articles_by_keyword(read, wiki):
    documents, _ = read(searches=("testland",), per_search=1)
    assert [document.title for document in documents] == ["Health in Testland"]
    assert wiki.queries[0]["srsearch"] == "testland"


def test_an_article_that_is_found_twice_is_one_document(read):
    documents, faults = read(titles=("Asthma", "Bronchial asthma"), searches=("asthma",))
    assert [document.title for document in documents] == ["Asthma"]
    assert faults == []


def test_what_cannot_be_read_is_named_and_the_rest_is_kept(read):
    documents, faults = read(
        titles=("No such article", "Test (disambiguation)", "Asthma"), searches=("xyzzy",), categories=("Nowhere",)
    )
    assert [document.title for document in documents] == ["Asthma"]
    assert len(faults) == 4
    for fault, said in zip(
        faults, ["en:No such article: there is no", "similar names", "en:xyzzy: the search", "no members"], strict=True
    ):
        assert said in fault


def test_the_number_of_articles_is_bounded_and_said(read):
    documents, faults = read(categories=("Health in Testland",), depth=5, max_pages=2)
    assert len(documents) == 2
    assert "max_pages" in faults[0]


def test_a_busy_wiki_is_asked_again_and_a_refusal_is_reported(read, wiki, make_client):
    busy = [error("maxlag"), error("ratelimited")]
    wiki.before = lambda query: busy.pop() if busy else None
    client = make_client()
    assert len(read(client, titles=("Asthma",))[0]) == 1
    assert len(client.waits) == 2
    assert all(query["maxlag"] == "5" for query in wiki.queries)
    wiki.before = lambda query: error("badtitle")
    assert "the API answers badtitle: about badtitle" in read(titles=("Deep article",))[1][0]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, {"Content-Type": "text/html"}, b"<html><p>Maintenance</p>"), "is text/html; expected json"),
        ((200, {"Content-Type": "application/json"}, b'{"query": {"pa'), "the answer is no JSON"),
        ((200, {"Content-Type": "application/json"}, b"[]"), "not an object"),
        ((200, {"Content-Type": "application/json"}, b"{}"), "holds no result"),
        ((200, {"Content-Type": "application/json"}, b'{"query": {"pages": []}}'), "another form"),
        ((200, {"Content-Type": "application/json"}, b'{"query": {"pages": [{"pageid": 1}]}}'), "holds no text"),
    ],
)
def test_an_answer_of_another_form_is_a_fault_of_that_article_alone(read, wiki, make_client, answer, said):
    wiki.before = lambda query: answer if query.get("titles") == "Deep article" else None
    documents, faults = read(make_client(retries=1), titles=("Deep article", "Asthma"))
    assert [document.title for document in documents] == ["Asthma"]
    assert said in faults[0]


def laws(client, base, *entries):
    return split(law_documents(client, JapaneseLawSettings(laws=entries, base=base)))


def test_an_act_keeps_its_name_number_version_and_articles(web, make_client):
    web.pages |= {
        "/en/laws/view/3213/en": (200, {"Content-Type": "text/html"}, LAW_EN.encode()),
        # The site's header names another charset than its bytes have.
        "/ja/laws/view/3213/ja": (200, {"Content-Type": "text/html; charset=iso-8859-1"}, LAW_JA.encode("cp932")),
    }
    (english, japanese), faults = laws(make_client(), web.url(""), "3213", "ja:3213")
    assert faults == []
    assert (english.id, english.title) == ("jlt-3213-en", "Testers Act (Act No. 201 of 1948)")
    assert (japanese.id, japanese.title) == ("jlt-3213-ja", "試験者法（昭和二十三年法律第二百一号）")
    assert english.url == web.url("/en/laws/view/3213/en")
    assert english.references == ("Last Version: Act No. 84 of 2006",)
    assert (english.jurisdiction, english.collection, english.domains) == ("JP", "law", ("medical", "legal"))
    assert "## Article 3, paragraph 2\n" in english.text
    assert "## 第二条第三項\n" in japanese.text


def test_laws_that_cannot_be_read_are_named(web, make_client):
    web.pages["/en/laws/view/1/en"] = html("<p>Search the database of laws</p>")
    documents, faults = laws(make_client(), web.url(""), "1", "2", "Medical Care Act")
    assert documents == []
    assert "holds no article" in faults[0]
    assert "404" in faults[1]
    assert faults[2].startswith("Medical Care Act: is no number of a law")


def pages(client, *pages, **about):
    return split(page_documents(client, pages, AboutSettings(**about)))


def test_pages_of_any_kind_become_documents(web, make_client):
    web.pages |= {
        "/guide.html": html(
            "<h1>Guide</h1><h2>Doses</h2><p>Five a day.</p><a rel='license' href='https://cc/by'>x</a>"
        ),
        "/a/report%201.pdf": (200, {"Content-Type": "application/pdf"}, pdf("Page one says this.", "Page two.")),
        "/m.docx": (200, {"Content-Type": "application/octet-stream"}, docx(("Normal", "A manual"))),
        "/note.txt": (200, {"Content-Type": "text/plain"}, "# 日本語のメモです。ひらがなもあります。".encode("euc_jp")),
    }
    addresses = [PageSettings(web.url(path)) for path in web.pages]
    documents, faults = pages(make_client(), *addresses, jurisdiction="EU", collection="law", domains=("legal",))
    assert faults == []
    guide, report, manual, note = documents
    assert (guide.title, guide.licence, guide.language, guide.jurisdiction) == ("Guide", "https://cc/by", "en", "EU")
    assert guide.publisher == web.host
    assert report.title == "report 1"
    assert report.licence == "not stated"
    assert "## page 2\n\nPage two." in report.text
    assert manual.text == "# m\n\nA manual"
    assert (note.language, note.text) == ("ja", "# note\n\n\\# 日本語のメモです。ひらがなもあります。")
    assert len({document.id for document in documents}) == 4


def test_what_a_page_says_of_itself_gives_way_to_what_the_user_says(web, make_client):
    web.pages["/a"] = html("<h1>Own</h1><p>x</p>")
    own = PageSettings(web.url("/a"), title="Mine", licence="MIT", language="de", domains=("ethical",), publisher="Me")
    (document,), _ = pages(make_client(), own, licence="CC0", language="fr", publisher="They")
    assert (document.title, document.licence, document.language) == ("Mine", "MIT", "de")
    assert (document.domains, document.publisher) == (("ethical",), "Me")


def test_a_folder_of_the_users_is_read(tmp_path):
    root, out = tmp_path / "mine", tmp_path / "mine" / "out"
    out.mkdir(parents=True)
    (root / ".hidden.txt").write_text("no")
    (out / "earlier.md").write_text("no")
    (root / "a.txt").write_bytes("Plain words – here".encode("cp1252"))
    (root / "b.md").write_text("# Notes on care\n\n## Part\n\nText")
    (root / "c.HTML").write_text("<h1>Web</h1><p>Text")
    (root / "d.pdf").write_bytes(pdf("Printed", damaged=None))
    (root / "e.docx").write_bytes(docx(("Normal", "Typed")))
    (root / "f.png").write_bytes(b"png")
    (root / "sub").mkdir()
    ready = render(Document("own-id", "Ready", "Me", "", "CC0", "en", "INT", ("legal",), "law", "# Ready\n\nText"))
    (root / "sub" / "g.md").write_text(ready)
    (root / "sub" / "h.md").write_text("---\nid: x\n---\ntext")
    (root / "sub" / "i.pdf").write_bytes(b"%PDF-1.4 broken")
    (root / "sub" / "j.txt").write_bytes(b" \n")
    (root / "sub" / "k.txt").write_bytes(b"x" * 60_000)
    documents, faults = split(file_documents(str(root), AboutSettings(), out, 50_000))
    names = [document.title for document in documents]
    assert names[:3] == ["a", "Notes on care", "Web"]
    assert next(d for d in documents if d.title == "Ready").id == "own-id"
    assert documents[1].text == "# Notes on care\n\n## Part\n\nText"
    assert [fault.split(":")[0] for fault in faults if "docx" not in fault] == [
        "sub/h.md", "sub/i.pdf", "sub/j.txt", "sub/k.txt",
    ]  # fmt: skip
    assert "title: missing" in faults[-4]


def test_a_document_is_written_once_and_only_when_it_changes(tmp_path):
    document = Document(
        "a", "No: #1", "p", "", "CC0", "no", "INT", ("legal",), "law", "# T\n\nText", references=("a: b",)
    )
    assert write(document, tmp_path / "new") is True
    assert write(document, tmp_path / "new") is False
    text = (tmp_path / "new" / "a.md").read_text(encoding="utf-8")
    assert parse_document(text) == document
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.md"]


def test_a_document_that_the_index_would_refuse_is_not_written(tmp_path):
    with pytest.raises(SourceError, match="no valid document"):
        write(Document("a b", "T", "p", "", "CC0", "en", "INT", ("legal",), "law", "Text"), tmp_path)
    assert list(tmp_path.iterdir()) == []
