from dspy_mama.core.cases import Passage


def test_a_citation_says_what_where_and_when_it_was_read():
    passage = Passage(
        "a#1",
        "text",
        title="Testers Act",
        section="Article 3, paragraph 2",
        url="https://e.org/a",
        accessed="2026-11-30",
    )
    assert passage.citation == "Testers Act, Article 3, paragraph 2, https://e.org/a, read on 2026-11-30"


def test_a_citation_leaves_out_what_is_not_known():
    assert Passage("a#1", "text", title="Asthma", section="Asthma").citation == "Asthma"
    assert Passage("a#1", "text").citation == "a#1"
