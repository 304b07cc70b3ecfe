import json


def test_the_ways_of_searching_are_printed_beside_one_another(mama):
    code, out, err = mama("index", "bench", "experiment.resamples=50")
    assert code == 0, err
    for part in (
        "dense, centred",
        "lexical",
        "hybrid by scores, centred, glossary *",
        "ja->en",
        "cross-lingual",
        "second set of queries",
        "Recall@4 by domain",
        "claims",
        "What hybrid by scores, centred, glossary has more than",
    ):
        assert part in out
    assert "DEBUG" not in err
    code, out, _ = mama("index", "bench", "experiment.resamples=50", "--json")
    document = json.loads(out)
    assert document["queries"] == 190
    assert document["default"] == "hybrid by scores, centred, glossary"


def test_queries_that_are_not_there_are_named(mama):
    code, _, err = mama("index", "bench", "--queries", "nowhere.jsonl")
    assert code == 2
    assert "nowhere.jsonl" in err
