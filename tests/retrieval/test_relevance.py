import json
import math
from collections import Counter

import pytest

from dspy_mama.core.cases import Passage
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.resources import shipped
from dspy_mama.retrieval import load_corpus
from dspy_mama.retrieval.relevance import Statement, load_queries, measure

QUERIES = shipped("data", "retrieval", "queries.jsonl")
GOOD = {
    "id": "q1",
    "language": "en",
    "domain": "legal",
    "jurisdictions": ["JP"],
    "question": "Who may?",
    "facts": [[{"document": "d", "anchor": "may not"}]],
}


def passages(*texts):
    return [Passage(id=str(n), document="d", text=text) for n, text in enumerate(texts)]


def fact(*anchors):
    return tuple(Statement("d", anchor) for anchor in anchors)


def test_recall_counts_facts_and_rank_the_first_of_them():
    ranking = passages("nothing", "alpha", "x", "x", "x", "beta\n  line")
    seen = measure([fact("alpha", "unsaid"), fact("beta line")], ranking, good=2)
    assert seen.recall == (0.0, 0.5, 1.0)
    assert seen.reciprocal_rank == 0.5
    ideal = 1 + 1 / math.log2(3)
    assert seen.ndcg == pytest.approx((1 / math.log2(3) + 1 / math.log2(7)) / ideal)


def test_what_lies_beyond_the_tenth_rank_is_not_found():
    seen = measure([fact("alpha")], passages(*["x"] * 10, "alpha"), good=1)
    assert (seen.recall, seen.reciprocal_rank, seen.ndcg) == ((0.0, 0.0, 0.0), 0.0, 0.0)


def test_the_same_words_in_another_document_do_not_count():
    elsewhere = [Passage(id="1", document="other", text="alpha")]
    assert measure([fact("alpha")], elsewhere, good=1).recall == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no JSON"),
        (json.dumps({**GOOD, "domain": "fiscal"}), "domain"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "facts"}), "facts: missing"),
        (json.dumps({**GOOD, "facts": []}), "needs"),
        (json.dumps({**GOOD, "question": ""}), "needs"),
        (json.dumps(GOOD) + "\n" + json.dumps(GOOD), "already taken"),
        ("", "no query"),
    ],
)
def test_a_fault_in_the_queries_names_its_line(tmp_path, line, reason):
    path = tmp_path / "queries.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(DeclarationError, match=reason):
        load_queries(path)


def test_separators_inside_a_text_do_not_end_a_line(tmp_path):
    path = tmp_path / "queries.jsonl"
    asked = "Who may\u2028prescribe\x85this?"
    path.write_text(f"\ufeff{json.dumps(GOOD | {'question': asked}, ensure_ascii=False)}\r\n", encoding="utf-8")
    assert [query.question for query in load_queries(path)] == [asked]


def test_shipped_facts_stand_once_in_documents_of_their_domain_and_jurisdiction():
    documents = {document.id: document for document in load_corpus()}
    for query in load_queries(QUERIES):
        for place in (place for fact in query.facts for place in fact):
            document = documents[place.document]
            assert " ".join(document.text.split()).count(place.anchor) == 1, (query.id, place)
            assert query.domain in document.domains, (query.id, place)
            assert document.jurisdiction in query.jurisdictions, (query.id, place)


def test_the_shipped_queries_cross_languages_and_cover_the_domains():
    queries = load_queries(QUERIES)
    pairs = Counter((q.language, place) for q in queries for place in {s.document[-2:] for f in q.facts for s in f})
    assert len(queries) >= 80
    assert pairs["ja", "en"] >= 25
    assert pairs["ja", "ja"] >= 20
    assert pairs["en", "ja"] >= 10
    assert min(Counter(q.domain for q in queries).values()) >= 20
    assert sum(bool(q.question and q.answer) for q in queries) >= 30
