import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.retrieval.corpus import load_corpus, parse_document
from dspy_mama.settings import CorpusSettings

GOOD = """---
id: law-x
title: "Act: who may practise"
publisher: project
url: https://example.org/
licence: Apache-2.0
language: en
jurisdiction: JP
domains: [legal, medical]
collection: law
accessed: 2026-11-30
references:
  - "Act No. 201"
---
# Act

Text.
"""


def test_a_document_is_read_whole():
    document = parse_document(GOOD)
    assert (document.id, document.title, document.accessed) == ("law-x", "Act: who may practise", "2026-11-30")
    assert document.domains == ("medical", "legal")
    assert document.references == ("Act No. 201",)
    assert document.text == "# Act\n\nText."


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("id: law-x\n", "", "x.md: id: missing"),
        ("id: law-x", "id: 12", "x.md: id: 12 must be"),
        ("id: law-x", "id: a#b", "x.md: id: 'a#b' must be"),
        ('title: "Act: who may practise"', "title: Act: who", "front matter line 3"),
        ('title: "Act: who may practise"', "title: 2026", "x.md: title: must be text, not 2026"),
        ("publisher: project", "publisher: ''", "x.md: publisher: must be text"),
        ("url: https://example.org/", "url: javascript:alert(1)", "x.md: url: 'javascript:alert(1)' must start"),
        ("language: en", "language: no", "x.md: language: YAML reads `no` as false"),
        ("language: en", "language: English", "two-letter"),
        ("jurisdiction: JP", "jurisdiction: JA", "x.md: jurisdiction: 'JA' must be one of JP, US"),
        ("jurisdiction: JP", "jurisdiction: [JP]", "x.md: jurisdiction: ['JP'] must be one of"),
        ("[legal, medical]", "[legal, medicine]", "x.md: domains: ['legal', 'medicine'] must be a list of medical"),
        ("[legal, medical]", "[]", "x.md: domains: [] must be"),
        ("collection: law", "collection: laws", "x.md: collection: 'laws' must be one of law, ethics"),
        ("accessed: 2026-11-30", "accessed: 30.11.2026", "x.md: accessed: '30.11.2026' must be a date"),
        ('- "Act No. 201"', "- Act: 201", "x.md: references: must be a list of texts"),
        ("# Act\n\nText.\n", " \n", "x.md: body: empty"),
        ("---\nid", "id", "x.md: front matter: missing"),
        ("language: en", "language: !!python/object/apply:os.getcwd []", "front matter line 7"),
    ],
)
def test_a_fault_names_file_and_field(old, new, reason):
    with pytest.raises(DeclarationError) as caught:
        parse_document(GOOD.replace(old, new, 1), "x.md")
    assert reason in str(caught.value)


def test_all_faults_of_all_documents_are_named_at_once(tmp_path):
    (tmp_path / "a.md").write_text(GOOD, encoding="utf-8")
    (tmp_path / "b.md").write_text(GOOD, encoding="utf-8")
    (tmp_path / "c.md").write_bytes(GOOD.replace("Text", "医師").encode("cp932"))
    (tmp_path / "d.md").write_text(GOOD.replace("id: law-x", "id: d").replace("url: ", "uri: "), encoding="utf-8")
    with pytest.raises(DeclarationError) as caught:
        load_corpus(CorpusSettings(path=str(tmp_path)))
    message = str(caught.value)
    assert "3 faults" in message
    assert "b.md: id: 'law-x' is already the id of a.md" in message
    assert "c.md: not UTF-8" in message
    assert "d.md: url: missing" in message


def test_byte_order_mark_windows_lines_and_other_files_are_no_hindrance(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    (tmp_path / "README.md").write_text("no front matter", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no front matter", encoding="utf-8")
    (tmp_path / ".hidden.md").write_text("no front matter", encoding="utf-8")
    (document,) = load_corpus(CorpusSettings(path=str(tmp_path)))
    assert (document.file, document.text) == ("sub/a.md", "# Act\n\nText.")


@pytest.mark.parametrize(("folder", "reason"), [("", "no document"), ("none", "is not a folder")])
def test_an_empty_or_missing_folder_is_refused(tmp_path, folder, reason):
    with pytest.raises(DeclarationError, match=reason):
        load_corpus(CorpusSettings(path=str(tmp_path / folder)))


def test_the_hash_follows_the_content_and_not_the_file():
    first, moved = parse_document(GOOD, "a.md"), parse_document(GOOD, "b.md")
    changed = parse_document(GOOD.replace("2026-11-30", "2026-12-01"), "a.md")
    assert first.hash == moved.hash != changed.hash


def test_the_shipped_corpus_is_read_and_is_bilingual():
    documents = load_corpus()
    assert len(documents) >= 40
    assert sum(document.language == "ja" for document in documents) >= 12
    assert {document.collection for document in documents} == {"law", "ethics", "guidance", "encyclopedic"}


def test_nothing_ships_that_was_fetched_from_others():
    facts = {(document.publisher, document.licence) for document in load_corpus()}
    assert facts == {("dspy_mama project", "Apache-2.0")}
