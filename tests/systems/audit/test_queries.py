import pytest

from dspy_mama.systems.audit.program import search_texts
from scripted import scripted_lm
from systems.audit.parts import MemoryRetriever, auditor

ANSWER = "Green mucus always means bacteria. Take the leftover tablets for five days."


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("question", ("Q?",)),
        ("answer", (ANSWER,)),
        ("both", (f"Q?\n{ANSWER}",)),
        ("claims", ("Q?\nGreen mucus always means bacteria.", "Q?\nTake the leftover tablets for five days.")),
    ],
)
def test_evidence_is_searched_with_what_the_settings_say(kind, texts):
    assert search_texts("Q?", ANSWER, kind) == texts


@pytest.mark.parametrize("kind", ["question", "answer", "both", "claims"])
def test_the_query_reaches_the_retriever_and_the_record(kind):
    retriever = MemoryRetriever()
    audit = auditor(scripted_lm(), retriever=retriever, query=kind)(question="Q?", answer=ANSWER)
    texts = search_texts("Q?", ANSWER, kind)
    assert retriever.queries == [texts[0] if len(texts) == 1 else texts]
    assert audit.phases["verification"].legal.query == "\n\n".join(texts)
