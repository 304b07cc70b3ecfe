"""Nested folds count what all of them cost, and are refused whole before the first is paid for."""

import pytest

from dspy_mama.core import DeclarationError
from dspy_mama.optimize import compile_nested
from dspy_mama.settings import OptimizerSettings, SplitSettings
from optimize.compile_parts import auditor, from_demos, gold_pairs, scripted


def nested(lm, pairs, folds=2, **options):
    settings = OptimizerSettings(name="labelled", demos=1, threads=2, split=SplitSettings(folds=folds))
    return compile_nested(auditor(lm), pairs, settings, **options)


def test_what_is_spent_is_what_all_folds_spent_together_and_a_second_look_is_counted(tmp_path):
    lm, ledger = scripted(from_demos), tmp_path / "looks.jsonl"
    first = nested(lm, gold_pairs(12), ledger=ledger, looks_as="first")
    document = first.to_dict()
    assert document["spent"]["calls"] == len(lm.requests) > document["folds"][0]["spent"]["calls"]
    assert document["test_looked_at_before"] == 0
    assert nested(lm, gold_pairs(12), ledger=ledger, looks_as="second").to_dict()["test_looked_at_before"] == 1


def test_folds_that_leave_nothing_to_choose_on_are_refused_before_the_first_is_paid_for():
    lm = scripted(from_demos)
    with pytest.raises(DeclarationError, match="validation split is empty"):
        nested(lm, gold_pairs(3))
    assert lm.requests == []
