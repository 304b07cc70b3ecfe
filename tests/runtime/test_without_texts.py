from dspy_mama.runtime.failures import without_texts


def test_a_record_without_texts_keeps_no_query_but_tells_that_there_was_a_search():
    searched = {"query": "My question\nIts answer", "risk": True}
    record = {
        "id": "1",
        "question": "My question",
        "answer": "Its answer",
        "notes": {"medical": "n"},
        "phases": {
            "initial": {"medical": {"risk": True}},
            "verification": {"medical": searched, "legal": {"query": None, "risk": False}},
        },
    }
    kept = without_texts(record)
    assert "My question" not in str(kept)
    assert "Its answer" not in str(kept)
    assert kept["phases"]["verification"]["medical"] == {"query": "", "risk": True}
    assert kept["phases"]["verification"]["legal"]["query"] is None
    assert searched["query"] == "My question\nIts answer"
    assert without_texts({"id": "1", "answer": "a"}) == {"id": "1"}


def test_the_lm_s_words_are_left_out_because_they_may_quote_the_texts():
    said = {"risk": True, "probability": 0.9, "reason": "says: My question", "findings": "My question", "raw": None}
    lost = {"outcome": "parse", "error": "field 'risk': 'My question' is not readable", "raw": "My question"}
    away = {"outcome": "infra", "error": "no route", "raw": None}
    verdicts = {"medical": {"outcome": "scored", **said}, "ethical": lost, "legal": away}
    routing = {"specialty": "Neurology", "definition": "My question", "source": "My question"}
    record = {"id": "1", "routing": routing, "phases": {"initial": verdicts}}
    kept = without_texts(record)
    assert "My question" not in str(kept)
    assert kept["routing"]["specialty"] == "Neurology"
    initial = kept["phases"]["initial"]
    assert (initial["medical"]["risk"], initial["medical"]["probability"]) == (True, 0.9)
    assert initial["ethical"]["outcome"] == "parse"
    assert initial["legal"]["error"] == "no route"
