"""Pairs from which nothing can be learned or shown are refused or named before anything is paid for."""

import pytest

from dspy_mama.core import DOMAINS, DeclarationError, QAPair
from dspy_mama.optimize import compile_program
from dspy_mama.optimize.splitting import check_splits, doubts_about, with_gold
from optimize.compile_parts import auditor, from_demos, gold_pairs, scripted


def labelled(id, *labels):
    gold = {domain: label for domain, label in zip(DOMAINS, labels, strict=True) if label is not None}
    return QAPair(id, f"Question {id}?", "Rest.", gold=gold)


def test_pairs_without_any_gold_are_refused_with_what_to_name():
    with pytest.raises(DeclarationError, match=r"none of the 2 pairs has a gold label.*data\.columns\.medical"):
        with_gold([labelled("a", None, None, None), labelled("b", None, None, None)])
    assert [pair.id for pair in with_gold([labelled("a", None, None, None), labelled("b", None, False, None)])] == ["b"]


def test_a_joint_target_needs_pairs_with_gold_in_every_domain():
    whole, partial = labelled("a", True, True, True), labelled("b", True, True, None)
    with pytest.raises(DeclarationError, match=r"no pair of the validation split.*average_macro_f1"):
        check_splits({"train": [whole], "validation": [partial]}, "joint_accuracy")
    check_splits({"train": [whole], "validation": [partial]}, "average_macro_f1")
    check_splits({"train": [whole], "validation": [labelled("c", False, False, False)]}, "joint_accuracy")


def test_what_splits_cannot_show_is_named_and_what_they_can_is_not():
    train = [labelled(f"t{n}", n % 2 == 0, False, None) for n in range(6)]
    validation = [labelled(f"v{n}", n % 2 == 0, n % 2 == 0, True) for n in range(6)]
    assert doubts_about({"train": train, "validation": validation}) == (
        "every gold label of the train pairs in the ethical domain is safe",
        "every gold label of the validation pairs in the legal domain is risky",
    )
    few = doubts_about({"train": validation[:2], "validation": validation[2:4]})
    assert few[0].startswith("2 validation pair(s)")
    assert [doubt for doubt in few if "medical" in doubt or "ethical" in doubt] == []


def test_a_question_that_splits_of_ones_own_share_is_named():
    train = [labelled(f"t{n}", n % 2 == 0, n % 2 == 0, n % 2 == 0) for n in range(6)]
    others = {part: [QAPair(f"{part}{n}", f"Question {part}{n}?", "Rest.", gold=pair.gold)
                     for n, pair in enumerate(train)] for part in ("validation", "test")}  # fmt: skip
    assert doubts_about({"train": train, **others}) == ()
    again = QAPair("other", "question T3", "Take it.", gold=train[0].gold)
    (doubt,) = doubts_about({"train": train, **others, "test": [*others["test"], again]})
    assert doubt.startswith("1 test pair(s), such as 'other', ask a question that training pairs ask too")


def test_doubts_are_told_at_once_and_stay_with_the_result():
    said = []
    result = compile_program(auditor(scripted(from_demos)), gold_pairs(6), "labelled", say=said.append, demos=1)
    assert result.doubts
    assert said[: len(result.doubts)] == [f"ATTENTION: {doubt}" for doubt in result.doubts]
    assert result.to_dict()["doubts"] == list(result.doubts)
    assert compile_program(auditor(scripted(from_demos)), gold_pairs(20), "labelled", demos=1).doubts == ()


def test_values_of_a_half_measured_program_are_named_as_such():
    result = compile_program(auditor(scripted(from_demos)), gold_pairs(20), "labelled", budget={"calls": 3}, demos=1)
    assert not result.kept
    assert any("did not reach to measure the uncompiled program" in doubt for doubt in result.doubts)


def test_a_budget_that_only_measures_says_that_it_leaves_nothing_for_a_search():
    result = compile_program(auditor(scripted(from_demos)), gold_pairs(20), "bootstrap", budget={"calls": 15}, demos=1)
    assert "leaves nothing for a search: measuring takes" in result.stopped
