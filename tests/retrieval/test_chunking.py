import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_mama.retrieval.chunking import chunk_document, is_cjk
from dspy_mama.retrieval.corpus import Document, load_corpus
from dspy_mama.settings import CorpusSettings


def document(text: str, title: str = "T", id: str = "d") -> Document:
    return Document(id, title, "p", "", "MIT", "en", "JP", ("legal",), "law", text)


SMALL = CorpusSettings(chunk_size=120, chunk_overlap=40, cjk_chunk_size=60, cjk_chunk_overlap=20)

plain = ["pain", "Dr.", "e.g.", "No. 5", "end.", "Why?", "\n\n", "\n", "# Head\n", "## Sub\n\n", "- item\n", "```\n"]
odd = ["頭が痛い。", "第十七条　医師は", "「はい。」と", "、", "a" * 90, "痛" * 90, "\t", "\r", "\u3000", "\u2028"]
joined = ["e\u0301", "👩\u200d⚕\ufe0f", "🇯🇵"]
words = st.sampled_from([*plain, *odd, *joined])
texts = st.lists(words, max_size=80).map(" ".join)
sizes = st.tuples(st.integers(50, 200), st.integers(0, 199), st.integers(50, 200), st.integers(0, 199)).map(
    lambda s: CorpusSettings(
        chunk_size=s[0],
        chunk_overlap=min(s[1], s[0] - 1),
        cjk_chunk_size=s[2],
        cjk_chunk_overlap=min(s[3], s[2] - 1),
    )
)


@settings(max_examples=300, deadline=None)
@given(texts, sizes)
def test_chunks_are_bounded_distinct_and_cover_the_text(text, sizes):
    chunks = chunk_document(document(text), sizes)
    size = sizes.cjk_chunk_size if is_cjk(text) else sizes.chunk_size
    assert all(chunk.text and len(chunk.text) <= size for chunk in chunks)
    assert len({chunk.text for chunk in chunks}) == len({chunk.id for chunk in chunks}) == len(chunks)
    assert all(chunk.text == text[chunk.start : chunk.end].strip() for chunk in chunks)
    assert all(a.start < b.start and a.end < b.end for a, b in itertools.pairwise(chunks))
    covered = {offset for chunk in chunks for offset in range(chunk.start, chunk.end)}
    kept = "".join(chunk.text for chunk in chunks)
    missing = "".join(text[offset] if offset not in covered else "\n" for offset in range(len(text)))
    # What no span covers is white space, or stands word for word in another chunk (a repetition).
    assert all(piece.strip() in kept for piece in missing.split("\n"))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(10, 35), min_size=20, max_size=60))
def test_neighbours_share_about_the_overlap_at_sentence_ends(lengths):
    text = " ".join(f"S{n}" + "x" * length + "." for n, length in enumerate(lengths))
    chunks = chunk_document(document(text), SMALL)
    for left, right in itertools.pairwise(chunks):
        assert 0 < left.end - right.start <= 60
        assert re.match(r"S\d+x", right.text)
        assert left.text.endswith(".")


def test_a_short_document_is_one_chunk():
    (chunk,) = chunk_document(document("# T\n\n## Article 17\nOnly physicians practise."))
    assert (chunk.section, chunk.start) == ("Article 17", 0)


def test_an_empty_document_has_no_chunk():
    assert chunk_document(document("")) == ()


def test_japanese_text_takes_the_smaller_size():
    text = "医師でなければ、医業をなしてはならない。" * 3 + "".join(f"第{n}の文がここにある。" for n in range(200))
    assert max(len(chunk.text) for chunk in chunk_document(document(text))) <= 750


def test_english_with_a_japanese_name_is_not_japanese():
    assert not is_cjk("The Medical Practitioners' Act (医師法) binds every physician in the country.")
    assert is_cjk(
        "医師法（Medical Practitioners' Act）は医師の資格について定める法律であり、医業を行う者に適用されます。"
    )


def test_a_chunk_names_the_sections_it_covers():
    body = "".join(f"## Article {n}\n" + f"Rule {n} is set out here for all. " * 4 + "\n\n" for n in range(1, 6))
    chunks = chunk_document(document("# T\n\n" + body), CorpusSettings(chunk_size=300, chunk_overlap=60))
    assert chunks[0].section == "Article 1; Article 2"
    for chunk in chunks:
        numbers = set(re.findall(r"Rule (\d)", chunk.text))
        assert set(re.findall(r"Article (\d)", chunk.section)) == numbers


def test_articles_of_a_plain_statute_are_sections():
    text = (
        "第十七条　医師でなければ、医業をなしてはならない。\n第十九条の二　診療に従事する医師は、応じなければならない。"
    )
    (chunk,) = chunk_document(document(text))
    assert chunk.section == "第十七条; 第十九条の二"


def test_a_mention_at_the_start_of_a_line_is_no_article_heading():
    (chunk,) = chunk_document(document("第17条により、医業は制限される。\nArticle 17 reserves it."))
    assert chunk.section == ""


def test_nested_headings_make_a_path_and_code_makes_none():
    text = "# T\n\n# Part\n\n## Rule\ntext\n\n```\n# not a heading\n```\n"
    (chunk,) = chunk_document(document(text))
    assert chunk.section == "Part; Part > Rule"


@pytest.mark.parametrize("heading", ["## Article 2", "第二条"])
def test_a_heading_is_never_left_alone_at_the_end(heading):
    text = (
        "".join(f"Sentence number {n} of the first part. " for n in range(9))
        + f"\n\n{heading}　\nThe rule follows. " * 3
    )
    for chunk in chunk_document(document(text), CorpusSettings(chunk_size=200, chunk_overlap=50)):
        assert not chunk.text.endswith(heading)


def test_an_id_depends_on_the_text_alone():
    before = chunk_document(document("First rule here. " * 4 + "\n\n" + "z" * 110 + "."), SMALL)
    after = chunk_document(document("Another rule now. " * 4 + "\n\n" + "z" * 110 + "."), SMALL)
    assert before[-1].id == after[-1].id
    assert before[0].id != after[0].id


def test_every_chunk_of_the_shipped_corpus_is_whole_sentences():
    for doc in load_corpus():
        for chunk in chunk_document(doc):
            assert chunk.section
            assert chunk.text[-1] in ".。!?！？)）」:;|" or not chunk.text[-1].isalpha(), chunk
