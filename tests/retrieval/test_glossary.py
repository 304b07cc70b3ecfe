import csv
import os

import numpy as np
import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.resources import shipped
from dspy_mama.retrieval.glossary import load_glossary
from dspy_mama.retrieval.lexical import LexicalIndex
from dspy_mama.retrieval.words import singular


def write(path, *rows):
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def small(tmp_path):
    return load_glossary(
        [
            write(
                tmp_path / "terms.csv",
                "field,en,ja,de",
                "symptom,fever,発熱|高熱|熱が,Fieber",
                "drug,fever reducer|antipyretic,解熱薬|解熱剤,",
                "drug,blood thinner|anticoagulant,抗凝固薬|血をサラサラ,Gerinnungshemmer",
                "test,INR,INR|プロトロンビン,",
            )
        ]
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("昨日から熱があります", {0: {"ja"}}),
        ("解熱薬をのみました", {1: {"ja"}}),
        ("高熱に解熱剤", {0: {"ja"}, 1: {"ja"}}),
        ("Are fever reducers fine?", {1: {"en"}}),
        ("FEVERS", {0: {"en"}}),
        ("feverish", {}),
        ("Ich habe Fieber", {0: {"de"}}),
        ("ＩＮＲが高い", {3: {"en", "ja"}}),
        ("", {}),
    ],
)
def test_the_longest_terms_name_the_concepts(small, text, named):
    assert small.find(text) == {concept: frozenset(languages) for concept, languages in named.items()}


def test_words_lead_to_documents_in_other_languages(small):
    texts = [
        "An anticoagulant thins blood.",
        "ワルファリンは抗凝固薬です。",
        "Ein Gerinnungshemmer.",
        "Fever in children.",
    ]
    languages = ["en", "ja", "de", "en"]
    plain, index = LexicalIndex(texts), LexicalIndex(texts, languages, small)
    asked = "血をサラサラにする薬は？"
    assert not plain.scores(asked)[[0, 2, 3]].any()
    found = index.scores(asked)
    assert found[0] > 0 < found[2]
    assert found[1] == plain.scores(asked)[1]
    assert found[3] == 0
    assert index.scores("Is a blood thinner safe?")[1] > 0


def test_a_thing_with_many_names_counts_once(tmp_path):
    glossary = load_glossary([write(tmp_path / "g.csv", "en,ja", "ulcer|peptic|gastric,潰瘍", "gastric,胃")])
    texts = ["ulcer peptic gastric", "ulcer", "gastric", "x", "y"]
    index = LexicalIndex(texts, ["en"] * 5, glossary)
    found = index.scores("潰瘍")
    np.testing.assert_allclose(
        found[0], max(LexicalIndex(texts).scores(term)[0] for term in ("ulcer", "peptic", "gastric"))
    )


def test_words_of_the_querys_own_language_count_as_without_it(small):
    texts = ["fever and antipyretic", "anticoagulant", "fever"]
    asked = "fever, an antipyretic or a blood thinner"
    found = LexicalIndex(texts, ["en"] * 3, small).scores(asked)
    np.testing.assert_array_equal(found, LexicalIndex(texts).scores(asked))


def test_no_glossary_named_is_none():
    assert load_glossary(()) is None


def test_files_are_joined_and_told_apart_by_their_content(tmp_path):
    first = write(tmp_path / "a.csv", "en,ja", "fever,発熱")
    second = write(tmp_path / "b.csv", "ja,en", "咳,cough")
    both = load_glossary([first, second])
    assert both.find("cough and fever").keys() == {0, 1}
    assert both.id != load_glossary([first]).id
    write(tmp_path / "a.csv", "en,ja", "fever,発熱|高熱が")
    assert load_glossary([first, second]).id != both.id


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["english,ja", "fever,発熱"], "row 1.*ISO 639-1"),
        (["en,field", "fever,x"], "row 1.*two or more languages"),
        (["en,en", "fever,x"], "row 1"),
        (["en,ja", "fever"], "row 2: 1 cell, the header has 2"),
        (["en,ja", "fever,発熱", "cough,"], "row 3: needs terms in two languages"),
        (["en,ja"], "holds no concept"),
        ([""], "row 1.*there is none"),
        (["en;ja", "fever;発熱"], "row 1.*parted by commas"),
        (["en,jp", "fever,発熱"], "row 1.*'jp' is no such code; do you mean ja"),
        (["EN,JA", "fever,発熱"], "row 1.*'EN' is no such code; do you mean en"),
        (["en,xx", "fever,発熱"], "row 1.*'xx' is no such code"),
        (["en,ja", "fever,発熱", f"{'x' * 140_000},咳"], "row 3: a cell of more than 131,072 characters; is a quote"),
        (["en,ja", '"fever', 'heat",発熱', "cough,"], r"row 3 \(line 4\): needs terms in two languages"),
        (["en,ja", "", "fever,発熱", '"cough,咳', "cold,風邪"], "row 4: a quote mark .* never closed"),
        (["en,ja", '"a"b,発熱'], "row 2: broken quoting"),
        (["en,ja", "the,発熱"], "row 2: needs terms in two languages.*with a word to search"),
    ],
)
def test_a_file_at_fault_is_named_with_its_row(tmp_path, rows, message):
    with pytest.raises(DeclarationError, match=rf"bad\.csv.*{message}"):
        load_glossary([write(tmp_path / "bad.csv", *rows)])


def test_a_cell_may_span_lines_and_hold_separators(tmp_path):
    glossary = load_glossary(
        [write(tmp_path / "g.csv", "en,ja", '"fever\nreducer|chill\u2028pill",解熱薬', "cough,咳")]
    )
    assert glossary.concepts[0]["en"] == ("fever reducer", "chill pill")
    assert glossary.find("a fever reducer for my cough").keys() == {0, 1}


@pytest.mark.parametrize("own", ["en,ja\nfever,発熱\n", "ja,en,de\n発熱,FEVERS,\n"])
def test_a_concept_that_stands_in_two_files_counts_once(tmp_path, own):
    shared = write(tmp_path / "shared.csv", "en,ja", "fever|pyrexia,発熱|高熱", "cough,咳")
    (tmp_path / "own.csv").write_text(own, encoding="utf-8")
    texts = ["fever and cough", "pyrexia", "rest", "drink"]
    languages = ["en"] * 4
    alone = LexicalIndex(texts, languages, load_glossary([shared])).scores("発熱と咳")
    for names in ([shared, str(tmp_path / "own.csv")], [str(tmp_path / "own.csv"), shared], [shared, shared]):
        joined = load_glossary(names)
        assert len(joined.concepts) == 2
        np.testing.assert_array_equal(LexicalIndex(texts, languages, joined).scores("発熱と咳"), alone)


def test_a_row_that_adds_terms_replaces_the_shorter_one_and_other_meanings_stay(tmp_path):
    first = write(tmp_path / "a.csv", "en,ja", "cold,風邪", "cold,寒い")
    second = write(tmp_path / "b.csv", "en,ja", "cold|flu,風邪|感冒")
    glossary = load_glossary([first, second])
    assert [concept["ja"] for concept in glossary.concepts] == [("寒い",), ("風邪", "感冒")]


def test_the_shipped_glossary_named_twice_is_the_shipped_glossary():
    assert load_glossary(["shipped", "shipped"]).concepts == load_glossary(["shipped"]).concepts


def test_a_changed_file_is_read_anew_also_where_its_time_stays(tmp_path):
    path = tmp_path / "g.csv"
    write(path, "en,ja", "fever,発熱")
    before, times = load_glossary([str(path)]), path.stat()
    write(path, "en,ja", "cough,咳咳")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    after = load_glossary([str(path)])
    assert after.concepts[0]["en"] == ("cough",)
    assert after.id != before.id


@pytest.mark.parametrize("name", ["", "a\0b.csv", "~no-such-user-here/g.csv", "."])
def test_a_name_that_is_no_file_is_said(name):
    with pytest.raises(DeclarationError, match=r"retriever\.glossary: .*cannot be read .*name CSV files"):
        load_glossary([name])


def test_a_missing_file_and_one_of_other_letters_are_refused(tmp_path):
    with pytest.raises(DeclarationError, match=r"nowhere\.csv cannot be read"):
        load_glossary([str(tmp_path / "nowhere.csv")])
    (tmp_path / "sjis.csv").write_bytes("en,ja\nfever,発熱\n".encode("shift_jis"))
    with pytest.raises(DeclarationError, match=r"sjis\.csv: not UTF-8"):
        load_glossary([str(tmp_path / "sjis.csv")])


@pytest.mark.parametrize(
    ("word", "base"),
    [
        ("fevers", "fever"),
        ("allergies", "allergy"),
        ("doses", "dose"),
        ("stress", "stress"),
        ("virus", "virus"),
        ("gas", "gas"),
    ],
)
def test_plurals_are_folded(word, base):
    assert singular(word) == base


def test_the_shipped_glossary_is_large_and_says_nothing_twice_in_a_row():
    path = shipped("data", "glossary", "terms.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    glossary = load_glossary(["shipped"])
    assert len(rows) == len(glossary.concepts) == 615
    for row, concept in zip(rows, glossary.concepts, strict=True):
        assert all(len(concept[name]) == len(row[name].split("|")) for name in ("en", "ja")), row
    assert not [
        row for row in rows if not any("\u3040" <= c <= "\u9fff" for c in row["ja"]) and not row["ja"].isascii()
    ]
