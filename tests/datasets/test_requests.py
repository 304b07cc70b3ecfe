import csv
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from dspy_mama.core.errors import DataError, DeclarationError
from dspy_mama.datasets.medsafetybench import PRINCIPLES
from dspy_mama.datasets.requests import load_requests
from dspy_mama.settings import DataSettings

REAL = Path(os.environ.get("MAMA_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data")) / "medsafetybench"


def bench(root, per=3, parts=(("train", "gpt4"), ("test", "gpt4"), ("test", "llama2"))):
    for part, writer in parts:
        folder = root / "datasets" / part / writer
        folder.mkdir(parents=True)
        for number in range(1, 10):
            rows = [[n, f"{part} {writer} {number} {n}?", f"No, {n}."] for n in range(per)]
            with (folder / f"med_safety_demonstrations_category_{number}.csv").open("w", newline="") as stream:
                csv.writer(stream).writerows([["", "harmful_medical_request", "safe_response"], *rows])
    return root


def load(path, name="medsafetybench", **settings):
    return load_requests(DataSettings(name=name, path=str(path), **settings))


def test_any_limit_goes_round_the_principles(tmp_path):
    loaded = load(bench(tmp_path), limit=18)
    assert [request.principle for request in loaded.requests[:10]] == [*PRINCIPLES, "I"]
    assert set(loaded.facts["principles"].values()) == {2}
    assert loaded.facts["requests"] == 54
    assert len(load(tmp_path, split="test").requests) == 54
    assert len(load(tmp_path, split="test_llama2").requests) == 27


def test_answers_are_written_unless_the_data_s_own_are_to_be_mended(tmp_path):
    bench(tmp_path)
    assert load(tmp_path).requests[0].answer is None
    assert load(tmp_path, columns={"answer": "safe_response"}).requests[0].answer == "No, 0."


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"split": "dev"}, "data.split: 'dev' is none of gpt4_balanced"),
        ({"language": "ja"}, "is English with fixed columns"),
        ({"columns": {"question": "q"}}, "is English with fixed columns"),
        ({"ids": ("x",)}, "data.ids: not in the data: x"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, settings, message):
    bench(tmp_path)
    with pytest.raises(DeclarationError, match=message):
        load(tmp_path, **settings)


def test_a_missing_part_names_the_file(tmp_path):
    bench(tmp_path, parts=(("test", "gpt4"),))
    with pytest.raises(DataError, match=r"train.gpt4.med_safety_demonstrations_category_1.csv.*is not there"):
        load(tmp_path)


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(DeclarationError, match="holds no datasets/test"):
        load(tmp_path)


@pytest.mark.skipif(not REAL.is_dir(), reason="needs the data set itself")
def test_the_real_data_set_has_its_published_counts():
    balanced = load(REAL).requests
    assert Counter(request.principle for request in balanced) == dict.fromkeys(PRINCIPLES, 100)
    assert len({request.question for request in balanced}) == 900
    published = Counter(request.principle for request in load(REAL, split="test").requests)
    assert [published[p] for p in PRINCIPLES] == [109, 107, 81, 106, 100, 74, 111, 114, 98]


def table(tmp_path, *rows):
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_table_holds_questions_answers_and_conversations(tmp_path):
    turns = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "I am pregnant."},
        {"role": "assistant", "content": "I see."},
        {"role": "user", "content": "May I take ibuprofen?"},
        {"role": "assistant", "content": "Sure."},
    ]
    path = table(tmp_path, {"id": "a", "messages": turns}, {"id": "b", "prompt": "Why?", "principle": 4, "extra": [{}]})
    one, two = load(path, "table").requests
    assert (one.question, one.answer) == ("May I take ibuprofen?", "Sure.")
    assert [turn.speaker for turn in one.history] == ["patient", "chatbot"]
    assert (two.question, two.answer, two.principle) == ("Why?", None, "IV")


def test_a_category_is_no_principle_unless_it_is_said_to_be_one(tmp_path):
    path = table(
        tmp_path, {"id": "a", "question": "q", "category": "3"}, {"id": "b", "question": "r", "category": "iv"}
    )
    assert [request.principle for request in load(path, "table").requests] == [None, None]
    assert load(path, "table").requests[0].extra["category"] == "3"
    named = load(path, "table", columns={"principle": "category"})
    assert [request.principle for request in named.requests] == ["III", "IV"]


def test_a_column_of_that_name_with_other_things_in_it_is_left_alone(tmp_path):
    path = table(tmp_path, {"id": "a", "question": "q", "principle": "Beneficence"})
    (request,) = load(path, "table").requests
    assert (request.principle, request.extra["principle"]) == (None, "Beneficence")
    with pytest.raises(DataError, match="row 1, column 'principle': 'Beneficence' is no principle"):
        load(path, "table", columns={"principle": "principle"})


def test_one_wrong_principle_among_others_is_named(tmp_path):
    rows = [{"id": n, "question": "q", "principle": p} for n, p in enumerate(["IV", "", "10", "9"])]
    with pytest.raises(DataError, match="row 3, column 'principle': '10' is no principle") as caught:
        load(table(tmp_path, *rows), "table")
    assert len(caught.value.faults) == 1


def test_a_turn_in_parts_is_the_text_of_them(tmp_path):
    parts = [{"type": "text", "text": "I am pregnant."}, {"type": "text", "text": "May I?"}]
    (request,) = load(table(tmp_path, {"id": "a", "messages": [{"role": "user", "content": parts}]}), "table").requests
    assert request.question == "I am pregnant.\nMay I?"
    turns = [{"role": "user", "content": [*parts, {"type": "image_url", "image_url": {"url": "x"}}]}]
    with pytest.raises(DataError, match="turn 1 holds no text"):
        load(table(tmp_path, {"id": "a", "messages": turns}), "table")


@pytest.mark.parametrize("repeated", [False, True])
def test_a_question_beside_a_conversation_comes_after_it(tmp_path, repeated):
    turns = [{"role": "user", "content": "I am pregnant."}, {"role": "assistant", "content": "I see."}]
    asked = [{"role": "user", "content": "And ibuprofen?"}] if repeated else []
    row = {"id": "a", "prompt": "And ibuprofen?", "messages": turns + asked}
    (request,) = load(table(tmp_path, row), "table").requests
    assert (request.question, request.answer) == ("And ibuprofen?", None)
    assert [turn.text for turn in request.history] == ["I am pregnant.", "I see."]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "a", "question": " "}], "row 1, column 'question': is empty"),
        ([{"id": "a", "question": "q"}, {"id": "a", "question": "r"}], "'a' occurs 2 times"),
        ([{"id": "a", "messages": [{"role": "robot", "content": "x"}]}], "turn 1 has the role 'robot'"),
        ([{"id": "a", "messages": [{"role": "assistant", "content": "x"}]}], "no turn of the patient"),
        ([{"id": "a", "messages": "hello"}], "is no JSON list of turns"),
        ([{"text": "q"}], "no column with the request"),
        ([{"question": "q", "answer": {"a": 1}}], "holds an object or a list"),
    ],
)
def test_faulty_rows_are_named(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        load(table(tmp_path, *rows), "table")


def test_data_without_requests_is_refused():
    with pytest.raises(DeclarationError, match="data=kqa: holds no requests"):
        load_requests(DataSettings(name="kqa", path="."))
