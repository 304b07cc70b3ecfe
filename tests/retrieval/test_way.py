import pytest

from dspy_mama.retrieval.glossary import load_glossary
from dspy_mama.retrieval.way import in_words, way_of
from dspy_mama.settings import RetrieverSettings


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "hybrid, fusion=scores (lexical_weight=0.15), centred, glossary=shipped (615 concepts)"),
        ({"fusion": "ranks", "glossary": ()}, "hybrid, fusion=ranks, centred, no glossary"),
        ({"search": "dense", "centred": False, "diversity": 0.3}, "dense, diversity=0.3"),
        ({"search": "lexical", "languages": "query"}, "lexical, glossary=shipped (615 concepts), languages=query"),
    ],
)
def test_the_way_says_what_is_on(changes, line):
    settings = RetrieverSettings(**changes)
    assert in_words(way_of(settings, load_glossary(settings.glossary))) == line


def test_the_facts_are_those_of_the_mode():
    glossary = load_glossary(["shipped"])
    way = way_of(RetrieverSettings(search="lexical"), glossary)
    assert (way["fusion"], way["lexical_weight"], way["centred"]) == (None, None, None)
    assert (way["glossary"], way["glossary_hash"], way["glossary_concepts"]) == (["shipped"], glossary.id, 615)
    dense = way_of(RetrieverSettings(search="dense"), None)
    assert (dense["glossary"], dense["glossary_hash"], dense["centred"]) == (None, None, True)
