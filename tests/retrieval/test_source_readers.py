"""Files and pages of any kind to text with sections."""

import re

import pytest

from dspy_mama.retrieval.sources.decoding import decode_page
from dspy_mama.retrieval.sources.html import read_html
from dspy_mama.retrieval.sources.page import Page, SourceError, kind_of
from dspy_mama.retrieval.sources.pdf import read_pdf
from dspy_mama.retrieval.sources.plain import clean, escape, language_of, slug
from dspy_mama.retrieval.sources.readers import read_content
from dspy_mama.retrieval.sources.statute import statute_markdown
from retrieval.papers import LAW_EN, LAW_JA, docx, pdf


def sections(markdown):
    """Text per heading of level 2."""
    parts = ("\n" + markdown).split("\n## ")[1:]
    return {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip() for part in parts if "\n" in part}


@pytest.mark.parametrize(
    ("content", "charset"),
    [
        ("医師法の条文です。".encode(), "iso-8859-1"),
        ("医師法の条文です。".encode(), ""),
        ("医師法の条文です。".encode("cp932"), "utf-8"),
        ("医師法の条文です。".encode("cp932"), "no-such-charset"),
        ("医師法の条文です。".encode("euc_jp"), "utf-8"),
        ("\ufeff医師法の条文です。".encode(), "shift_jis"),
        ("医師法の条文です。".encode("utf-16"), ""),
        ('<meta charset="euc-jp">医師法の条文です。'.encode("euc_jp"), ""),
    ],
)
def test_a_wrong_or_missing_charset_does_no_harm(content, charset):
    assert decode_page(content, charset, "page").endswith("医師法の条文です。")


def test_a_page_in_the_charset_that_its_server_names_is_read_with_it():
    assert decode_page("Ärzte “tun” gut".encode("cp1252"), "iso-8859-1", "page") == "Ärzte “tun” gut"
    assert decode_page("Ярославль".encode("koi8-r"), "koi8-r", "page") == "Ярославль"


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(SourceError, match="page: its text is in none of utf-8"):
        decode_page(bytes(range(256)), "utf-8", "page")


def test_html_keeps_headings_lists_and_tables_and_drops_the_rest():
    page = read_html(
        "<html lang='de-AT'><head><title>Tab title</title><link rel=license href='https://example.org/by'></head><body>"
        "<nav>Menu</nav><h1>Guide  to\n tests</h1><p>First <b>bold</b> words.<p>Second"
        "<h2>Rules</h2><ul><li>one<li>two</ul><table><tr><th>dose<th>unit<tr><td>5<td>mg</table>"
        "<script>alert('no')</script><!-- no --><p># no heading</p><footer>Imprint</footer></body></html>",
        "page",
    )
    assert (page.title, page.language, page.licence) == ("Guide to tests", "de", "https://example.org/by")
    assert page.markdown() == (
        "# Guide to tests\n\nFirst bold words.\nSecond\n\n## Rules\n\n- one\n- two\ndose | unit\n5 | mg\n\\# no heading"
    )


@pytest.mark.parametrize(
    "source",
    [
        "<p>Text that matters<div><b>and <i>more",
        "<<<>>><p>Text that matters</p></p></div></html></html>",
        "<html><body><table><tr><td>Text that matters",
        "Text that matters &unknown; &#xffffffff;",
        "<p>Text that matters</p>" + "<div>" * 5000,
    ],
)
def test_broken_html_is_read(source):
    assert "Text that matters" in read_html(source, "page").markdown()


@pytest.mark.parametrize("source", ["", "<html><script>app()</script><body></body></html>", "<nav>menu</nav>"])
def test_a_page_without_text_is_refused(source):
    with pytest.raises(SourceError, match="page: the page holds no text"):
        read_html(source, "page")


def test_the_marked_text_of_a_page_is_preferred_unless_it_is_a_fragment():
    frame = "<body><div>Frame</div><main>{}</main></body>"
    assert (
        read_html(frame.format("<p>The text itself, at length.</p>"), "p").markdown() == "The text itself, at length."
    )
    assert "Frame" in read_html(frame.format("<p>x</p>"), "p").markdown()


def test_a_pdf_keeps_its_page_numbers_and_title():
    read = read_pdf(pdf("Doses are writ-\nten here.", "", "(Third) page", title="A guideline"), "g.pdf")
    assert read.title == "A guideline"
    assert read.pages == {1: "Doses are written here.", 3: "(Third) page"}
    assert sections(read.markdown()) == {"page 1": "Doses are written here.", "page 3": "(Third) page"}


def test_a_damaged_page_of_a_pdf_is_named_and_the_others_are_kept():
    read = read_pdf(pdf("First", "Second", "Third", damaged=2), "g.pdf")
    assert list(read.pages) == [1, 3]
    assert len(read.faults) == 1
    assert read.faults[0].startswith("page 2 cannot be read")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (pdf("", ""), "OCR"),
        (b"%PDF-1.4\n" + b"garbage" * 50, "broken or protected"),
        (pdf("A page of text")[:200], "broken or protected"),
    ],
)
def test_a_pdf_that_gives_nothing_says_why(content, reason):
    with pytest.raises(SourceError, match=r"g\.pdf: ") as caught:
        read_pdf(content, "g.pdf")
    assert reason in caught.value.reason


def test_a_mended_pdf_leaves_no_message_that_names_no_file(caplog):
    flawed = re.sub(rb"startxref\n\d+", b"startxref\n17", pdf("Text"))
    assert read_pdf(flawed, "g.pdf").pages == {1: "Text"}
    assert caplog.records == []


def test_text_too_large_to_cite_from_is_refused():
    with pytest.raises(SourceError, match="larger than 20,000,000 bytes"):
        read_content(b"x" * 20_000_001, "text", "", "page")


def test_a_pdf_with_a_password_says_so():
    import io

    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("Secret"))))
    writer.encrypt("word", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    with pytest.raises(SourceError, match="password"):
        read_pdf(out.getvalue(), "g.pdf")


def test_docx_keeps_headings_and_tables_in_order():
    content = docx(
        ("Heading 1", "Rules"), ("Normal", "# text"), [["dose", "unit"], ["5", "mg"]], ("List Bullet", "one"),
        title="A manual",
    )  # fmt: skip
    read = read_content(content, "docx", "", "m.docx")
    assert read.title == "A manual"
    assert read.text == "# Rules\n\n\\# text\ndose | unit\n5 | mg\n- one"


@pytest.mark.parametrize("content", [b"PK\x03\x04 no archive", b"", docx()])
def test_a_docx_that_gives_nothing_is_refused(content):
    with pytest.raises(SourceError, match=r"m\.docx: the Word file"):
        read_content(content, "docx", "", "m.docx")


def test_a_small_archive_that_unpacks_to_anything_is_refused(monkeypatch):
    import io
    import zipfile

    out = io.BytesIO(docx(("Normal", "text")))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/huge.bin", b"\0" * 3_000_000)
    assert len(out.getvalue()) < 100_000
    monkeypatch.setattr("dspy_mama.retrieval.sources.docx._MOST_UNPACKED", 2_000_000)
    with pytest.raises(SourceError, match="unpacks to"):
        read_content(out.getvalue(), "docx", "", "m.docx")


@pytest.mark.parametrize(
    ("content", "declared", "kind"),
    [
        (b"\n%PDF-1.7 ...", "text/html", "pdf"),
        (b"<!DOCTYPE html><p>", "application/octet-stream", "html"),
        (b"\xef\xbb\xbf<html>", "", "html"),
        (b"words", "text/plain", "text"),
        (b"words", "application/octet-stream", None),
        (b"PK\x03\x04", "application/zip", None),
        (b"{}", "application/json", "json"),
    ],
)
def test_the_kind_of_a_page_is_told_by_its_bytes_first(content, declared, kind):
    assert kind_of(Page("http://h/x", "http://h/x", content, declared, "", "")) == kind


def test_an_english_act_has_a_heading_per_article_and_paragraph():
    lines = [block.text for block in read_html(LAW_EN, "act").blocks]
    text, articles = statute_markdown(lines, "en")
    found = sections(text)
    assert articles == 6
    assert list(found) == [
        "Article 1", "Article 2, paragraph 1", "Article 2, paragraph 2", "Article 3, paragraph 1",
        "Article 3, paragraph 2", "Articles 4 and 5", "Article 6-2",
        "Supplementary Provisions (Act No. 84 of 2006), Article 1",
    ]  # fmt: skip
    assert found["Article 1"] == "(Purpose)\nThe purpose of this Act is to have things tested."
    assert "(ii)a test is what a tester does." in found["Article 2, paragraph 1"]
    assert found["Article 3, paragraph 2"].endswith("Article 1 of the Reports Act is not repeated here.")
    assert "TOC" not in text
    assert "footer" not in text
    assert "**Chapter I General Provisions**" in text


def test_a_japanese_act_has_a_heading_per_article_and_paragraph():
    lines = [block.text for block in read_html(LAW_JA, "act").blocks]
    text, articles = statute_markdown(lines, "ja")
    found = sections(text)
    assert articles == 4
    assert list(found) == ["第一条", "第二条第一項", "第二条第二項", "第二条第三項", "第三条の二", "附則　第一条"]
    assert found["第一条"] == "（目的）\nこの法律は、試験を目的とする。"
    assert found["第二条第三項"] == "第一条の規定は、準用する。"
    assert found["第三条の二"].endswith("第一条の規定は、適用しない。")
    assert "目次" not in text


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_page_that_is_no_act_has_no_article(language):
    assert statute_markdown(["Article 3 of the Act says so.", "第三条の規定による。", "(2) words"], language)[1] == 0


def test_text_is_cleaned_and_its_lines_are_no_headings():
    assert clean("a\r\nb\x00\x0cc\u200b  \n\n\n\nd\ud800") == "a\nb\nc\n\nd?"
    assert escape("# a\n#b\n  ## c\n```\ntext") == "\\# a\n#b\n  \\## c\n\\```\ntext"
    assert (language_of("これは日本語のぶんしょうです。"), language_of("English")) == ("ja", "en")
    assert (slug("Ärzte & Co., 2nd ed."), slug("医師法")) == ("arzte-co-2nd-ed", "")


def test_text_without_any_declaration_is_read_where_it_shows_what_it_is():
    assert decode_page("Prüfung – fünf Gründe".encode("cp1252"), "", "page") == "Prüfung – fünf Gründe"
    assert decode_page("セル café の表".encode(), "", "page") == "セル café の表"
    with pytest.raises(SourceError, match="in none of"):
        decode_page("Проверка".encode("cp1251"), "", "page")
