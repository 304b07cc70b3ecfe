"""A whole fetch: every fault of the web ends in a message, and all other documents are kept."""

import subprocess
import sys
import time

import pytest

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.retrieval import build_index, load_corpus, search_index
from dspy_mama.retrieval.sources import fetch_corpus
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings
from dspy_mama.settings.sources import HttpSettings, JapaneseLawSettings, PageSettings, WikipediaSettings
from retrieval.papers import LAW_EN, pdf
from retrieval.web_server import WebServer, cut_off, dripping, html, silent, then
from retrieval.wiki import Wiki

FAULTS = {
    "/missing": ((404, {}, b""), "404 Not Found"),
    "/busy": ((429, {"Retry-After": "9999"}, b""), "asks to wait 9999 s"),
    "/broken": ((500, {}, b""), "500 Internal Server Error"),
    "/silent": (silent, "no answer within 2 s"),
    "/dripping": (dripping, "still arriving after 2 s"),
    "/loop": ((302, {"Location": "/loop"}, b""), "redirects in a loop"),
    "/huge": ((200, {"Content-Type": "text/html", "Content-Length": "99999999"}, b""), "larger than 1,000,000 bytes"),
    "/cut": (cut_off, "cut off"),
    "/picture": ((200, {"Content-Type": "image/png"}, b"\x89PNG"), "is image/png"),
    "/login.pdf": (html("<p>log in</p>"), "web page in place of the file"),
    "/damaged.pdf": ((200, {"Content-Type": "application/pdf"}, b"%PDF-1.7 damaged"), "cannot be read"),
    "/bytes": ((200, {"Content-Type": "text/html"}, bytes(range(256))), "in none of"),
    "/empty": (html("<script>app()</script>"), "holds no text"),
}


@pytest.fixture
def corpus(web, tmp_path):
    """Makes corpus settings whose documents go to a folder of the test's."""

    def make(**sources):
        http = {"delay": 0.0, "retries": 0, "timeout": 2.0, "deadline": 2.0, "max_bytes": 1_000_000}
        http |= {"cache": str(tmp_path / "pages")} | sources.pop("http", {})
        return CorpusSettings(name="test", out=str(tmp_path / "documents"), http=HttpSettings(**http), **sources)

    return make


def test_every_fault_is_named_and_every_other_document_kept(web, corpus):
    web.pages |= {path: script for path, (script, _) in FAULTS.items()}
    web.pages |= {
        "/first": html("<p>One</p>"),
        "/charset": html("<p>医師です</p>", charset="cp932"),
        "/last": html("<p>Z"),
    }
    urls = ["/first", *FAULTS, "/charset", "/last"]
    report = fetch_corpus(corpus(urls=tuple(web.url(path) for path in urls)))
    assert report.written == 3
    assert len(report.faults) == len(FAULTS)
    for fault, (path, (_, said)) in zip(report.faults, FAULTS.items(), strict=True):
        assert fault.startswith(f"{web.url(path)}: ")
        assert said in fault
    assert {document.url for document in load_corpus(corpus())} == {
        web.url(path) for path in ("/first", "/charset", "/last")
    }
    assert any("医師です" in document.text for document in load_corpus(corpus()))


def test_all_sources_end_in_one_folder_that_index_build_reads(web, corpus, tmp_path):
    wiki = Wiki()
    web.pages |= {
        "/w/api.php": wiki,
        "/en/laws/view/3213/en": (200, {"Content-Type": "text/html"}, LAW_EN.encode()),
        "/guide.pdf": (200, {"Content-Type": "application/pdf"}, pdf("Doses.", "Never take more than five tablets.")),
    }
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note.txt").write_text("A note on the testing of wheels.", encoding="utf-8")
    settings = corpus(
        wikipedia=WikipediaSettings(titles=("Asthma",), endpoint=web.url("/w/api.php")),
        japanese_law=JapaneseLawSettings(laws=("3213",), base=web.url("")),
        pages=(PageSettings(web.url("/guide.pdf"), title="Guide", licence="CC-BY-4.0"),),
        files=str(tmp_path / "mine"),
    )
    report = fetch_corpus(settings)
    assert (report.written, report.unchanged, report.faults) == (4, 0, ())
    embedder, retriever = EmbedderSettings(kind="use"), RetrieverSettings(path=str(tmp_path / "index"))
    assert build_index(settings, embedder, retriever).documents == 4

    def best(query, domain="medical"):
        return search_index(settings, embedder, retriever, query)[domain][0]

    wheeze = best("wheezing wakes the patient at night: asthma")
    assert (wheeze.title, wheeze.url) == ("Asthma", web.url("/w/index.php?oldid=500"))
    assert "Signs > At night" in wheeze.section
    law = best("a tester must not turn a request away", "legal")
    assert law.title == "Testers Act (Act No. 201 of 1948)"
    assert "Article 3, paragraph 1" in law.section
    page = best("never take more than five tablets")
    assert "page 2" in page.section
    assert (page.licence, page.title) == ("CC-BY-4.0", "Guide")
    assert all(passage.accessed for passage in (wheeze, law, page))


def test_a_second_fetch_asks_nothing_and_changes_nothing_until_pages_change(web, corpus):
    web.pages["/w/api.php"] = wiki = Wiki()

    def settings(**http):
        chosen = WikipediaSettings(titles=("Asthma", "Deep article"), endpoint=web.url("/w/api.php"))
        return corpus(wikipedia=chosen, http=http)

    fetch_corpus(settings())
    again = fetch_corpus(settings())
    assert (again.written, again.unchanged, again.requests, again.cached) == (0, 2, 0, 2)
    wiki.revision = 501
    assert fetch_corpus(settings(max_age=0)).written == 2
    fewer = fetch_corpus(corpus(wikipedia=WikipediaSettings(titles=("Asthma",), endpoint=web.url("/w/api.php"))))
    assert (fewer.unchanged, fewer.earlier) == (1, 1)


def test_a_document_stays_when_its_page_fails_later(web, corpus):
    web.pages["/a"] = then(html("<p>kept</p>"), (500, {}, b""))
    web.pages["/b"] = html("<p>b</p>")
    urls = (web.url("/a"), web.url("/b"))
    fetch_corpus(corpus(urls=urls))
    report = fetch_corpus(corpus(urls=urls, http={"max_age": 0}))
    assert len(report.faults) == 1
    assert report.earlier == 1
    assert len(load_corpus(corpus())) == 2


def test_a_damaged_part_is_reported_beside_its_document(web, corpus):
    web.pages["/a.pdf"] = (200, {"Content-Type": "application/pdf"}, pdf("One", "Two", "Three", damaged=2))
    report = fetch_corpus(corpus(urls=(web.url("/a.pdf"),)))
    assert report.written == 1
    assert report.faults[0].startswith(f"{web.url('/a.pdf')}: page 2 cannot be read")


def test_nothing_fetched_is_a_failure_that_names_the_faults(web, corpus):
    with pytest.raises(ExecutionError, match=r"nothing was fetched:\n.*/a: .*404"):
        fetch_corpus(corpus(urls=(web.url("/a"), web.url("/b"))))


def test_no_source_and_no_folder_are_declarations_at_fault(web):
    with pytest.raises(DeclarationError, match="no source to fetch"):
        fetch_corpus(CorpusSettings(out="x"))
    with pytest.raises(DeclarationError, match=r"corpus\.out: name the folder"):
        fetch_corpus(CorpusSettings(urls=(web.url("/a"),)))
    with pytest.raises(DeclarationError, match=r"corpus\.files: .* is not a folder"):
        fetch_corpus(CorpusSettings(files="/no/such/folder", out="x"))


def test_documents_do_not_go_among_the_files_they_are_made_from(tmp_path):
    with pytest.raises(DeclarationError, match="the same folder"):
        fetch_corpus(CorpusSettings(files=str(tmp_path), out=f"{tmp_path}/."))


def test_two_documents_of_one_id_are_never_merged_in_silence(web, corpus):
    web.pages["/a"] = html("<p>Text</p>")
    report = fetch_corpus(corpus(urls=(web.url("/a"), web.url("/a"))))
    assert report.written == 1
    assert "is another document's" in report.faults[0]


def test_sources_without_their_folder_never_mean_the_shipped_corpus():
    with pytest.raises(DeclarationError, match=r"corpus\.out: name the folder.*index fetch"):
        load_corpus(CorpusSettings(urls=("https://example.org",)))
    with pytest.raises(DeclarationError, match=r"corpus\.out: .*fetch them with `mama index fetch corpus\.out="):
        load_corpus(CorpusSettings(urls=("https://example.org",), out="/no/such/folder"))


@pytest.mark.parametrize(
    ("module", "path", "kind"), [("pypdf", "/a.pdf", "application/pdf"), ("bs4", "/a", "text/html")]
)
def test_an_absent_library_is_named_with_the_extra_that_brings_it(web, corpus, monkeypatch, module, path, kind):
    web.pages[path] = (200, {"Content-Type": kind}, pdf("x") if module == "pypdf" else b"<p>x")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DeclarationError, match=rf"needs {module}.*pip install 'dspy-mama\[sources\]'"):
        fetch_corpus(corpus(urls=(web.url(path),)))


def test_a_killed_fetch_is_gone_on_with(tmp_path):
    server = WebServer()
    try:
        server.pages |= {"/1": html("<p>One</p>"), "/2": html("<p>Two</p>"), "/3": silent}
        urls = ",".join(server.url(f"/{number}") for number in (1, 2, 3))
        command = [
            sys.executable, "-m", "dspy_mama.cli", "index", "fetch", "corpus=pages", f"corpus.urls=[{urls}]",
            f"corpus.out={tmp_path / 'documents'}", f"corpus.http.cache={tmp_path / 'pages'}", "corpus.http.delay=0",
        ]  # fmt: skip
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while not server.count("/3") and time.monotonic() < until:
            time.sleep(0.02)
        started.kill()
        started.wait()
        assert len(list((tmp_path / "documents").glob("*.md"))) == 2
        server.pages["/3"] = html("<p>Three</p>")
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "1 document written, 2 unchanged" in done.stdout
        assert [server.count(f"/{number}") for number in (1, 2)] == [1, 1]
    finally:
        server.close()
