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
