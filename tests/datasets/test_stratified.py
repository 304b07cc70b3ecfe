import json

import pytest

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.stratified import read_splits, split_document, stratified_folds, stratified_split

SHARES = {"train": 0.4, "validation": 0.3, "test": 0.3}


def pairs_of(n=100):
    """Six in a hundred bear an ethical risk."""
    return [
        QAPair(f"p{i}", f"question {i}", "answer", gold={"medical": i % 3 == 0, "ethical": i % 16 == 1, "legal": False})
        for i in range(n)
    ]


def test_every_split_has_its_share_of_a_rare_label():
    splits = stratified_split(pairs_of(), SHARES)
    rare = {name: sum(p.gold["ethical"] for p in part) for name, part in splits.items()}
    assert sum(rare.values()) == 7
    assert min(rare.values()) >= 2
    assert {name: len(part) for name, part in splits.items()} == {"train": 40, "validation": 30, "test": 30}


def test_splits_are_disjoint_whole_and_do_not_depend_on_the_order_of_rows():
    pairs = pairs_of()
    splits = stratified_split(pairs, SHARES)
    ids = [p.id for part in splits.values() for p in part]
    assert sorted(ids) == sorted(p.id for p in pairs)
    turned = stratified_split(pairs[::-1], SHARES)
    assert {name: {p.id for p in part} for name, part in splits.items()} == {
        name: {p.id for p in part} for name, part in turned.items()
    }
    other = stratified_split(pairs, SHARES, "another salt")
    assert {p.id for p in other["test"]} != {p.id for p in splits["test"]}


def test_answers_to_one_question_stay_together():
    pairs = [
        QAPair(f"q{i}a{j}", f"question {i}", f"answer {j}", gold={"medical": j == 0}) for i in range(20) for j in (0, 1)
    ]
    for part in stratified_split(pairs, SHARES).values():
        ids = {p.id for p in part}
        assert all({f"{i[:-1]}0", f"{i[:-1]}1"} <= ids for i in ids)
    for fold in stratified_folds(pairs, 5):
        assert not {p.question for p in fold["train"]} & {p.question for p in fold["test"]}


def test_a_question_in_other_spelling_stays_together_too():
    spellings = ("May I take {} mg?", "may i take {}  MG ?", "May I take {} mg", "\uff2day I take {} mg\uff1f")
    pairs = [QAPair(f"q{i}a{j}", text.format(i), "answer", gold={"medical": i % 2 == 0})
             for i in range(20) for j, text in enumerate(spellings)]  # fmt: skip
    for part in [*stratified_split(pairs, SHARES).values(), *(fold["test"] for fold in stratified_folds(pairs, 5))]:
        assert len(part) == len(spellings) * len({pair.id.split("a")[0] for pair in part})


def test_each_pair_is_tested_in_exactly_one_fold_and_folds_share_the_rare_label():
    folds = stratified_folds(pairs_of(), 5)
    assert sorted(p.id for fold in folds for p in fold["test"]) == sorted(p.id for p in pairs_of())
    assert all(len(fold["train"]) + len(fold["test"]) == 100 for fold in folds)
    assert all(sum(p.gold["ethical"] for p in fold["test"]) in (1, 2) for fold in folds)


def test_splits_are_read_from_the_file_that_was_written(tmp_path):
    pairs = pairs_of(20)
    splits = stratified_split(pairs, SHARES)
    path = tmp_path / "splits.json"
    path.write_text(json.dumps(split_document(splits, "dspy_mama")))
    again = read_splits(path, pairs)
    assert {name: [p.id for p in part] for name, part in again.items()} == {
        name: [p.id for p in part] for name, part in splits.items()
    }


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"train": ["p0"], "validation": ["p0"], "test": []}, "more than one split"),
        ({"train": ["nobody"], "validation": ["p1"], "test": []}, "not in the data"),
        ({"train": ["p0"]}, "no file of splits"),
    ],
)
def test_a_file_of_splits_that_leaks_or_does_not_fit_is_refused(tmp_path, document, said):
    path = tmp_path / "splits.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DeclarationError, match=said):
        read_splits(path, pairs_of(4))


def test_too_many_folds_and_ids_that_occur_twice_are_refused():
    with pytest.raises(DeclarationError, match="cannot be divided"):
        stratified_folds(pairs_of(3), 5)
    with pytest.raises(DeclarationError, match="occurs twice"):
        stratified_split([*pairs_of(3), *pairs_of(1)], SHARES)
