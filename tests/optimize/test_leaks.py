"""No fold learns from its own test pairs, and a leak that is put in is found by what holds folds to their splits."""

import re

import pytest

from dspy_mama.core.cases import QAPair
from dspy_mama.datasets.stratified import stratified_folds
from dspy_mama.optimize import compile_nested, compiling, nested, searching
from dspy_mama.settings import OptimizerSettings, SplitSettings
from optimize.canaries import Watch, assert_no_leak, assert_watched, canary_pairs, ids_of
from optimize.compile_parts import auditor, gold_pairs, scripted, shifted_stated
from optimize.helped import HELPED, QUICK, compiled

FOLDS = 2
ENOUGH = {"gepa": {"rounds": 4}, "mipro": {"trials": 4, "candidates": 2}}
"""The least with which these come to propose something."""


def nested_compilation(name, watch, pairs):
    script, _ = HELPED[name]
    least = {"trials": 2, "candidates": 1, "rounds": 1, **ENOUGH.get(name.removeprefix("staged_"), {})}
    sizes = {**QUICK, **least, "keep": "always"}
    settings = OptimizerSettings(name=name, split=SplitSettings(folds=FOLDS), **sizes)
    program = auditor(scripted(watch), probability="stated" if script is shifted_stated else "token")
    with watch.over_everything():
        return compile_nested(program, pairs, settings, say=watch.say), settings


def assert_folds_hold(watch, result, pairs, salt):
    """Holds every fold to the outer folds as they are drawn here, and the last compilation to having no test pair."""
    for number, outer in enumerate(stratified_folds(pairs, FOLDS, salt)):
        fold = result.folds[number]
        assert ids_of(fold.splits["train"]) | ids_of(fold.splits["validation"]) == ids_of(outer["train"]), "folds"
        splits = {**{part: fold.splits[part] for part in ("train", "validation")}, "test": outer["test"]}
        assert_no_leak(watch, fold, splits, f"fold {number + 1}")
        assert [r["id"] for r in fold.test.after.records] == [pair.id for pair in outer["test"]]
    assert_no_leak(watch, result.final, {**result.final.splits, "test": []}, "all pairs")


@pytest.mark.parametrize("name", HELPED)
def test_in_nested_folds_no_prompt_reward_demonstration_cut_or_choice_saw_a_pair_of_the_folds_test_part(name):
    pairs, watch = canary_pairs(18), Watch(HELPED[name][0])
    result, settings = nested_compilation(name, watch, pairs)
    assert {event.fold for event in watch.events} == {"fold 1", "fold 2", "all pairs"}
    assert_watched(watch, name, result.final, result.final.splits)
    assert_folds_hold(watch, result, pairs, settings.split.salt)
    assert sorted(r["id"] for r in result.measured.after.records) == sorted(ids_of(pairs))
    assert result.final.test is None


def leaky(name, monkeypatch, change, pairs=None):
    """Compiles on splits that `change` made leak, and holds the compilation to those that were meant."""
    monkeypatch.setattr(compiling, "check_splits", lambda *_: None)
    pairs = pairs or canary_pairs()
    meant = compiling.split_pairs(pairs, OptimizerSettings(name=name))
    script, options = HELPED[name]
    watch = Watch(script)
    with watch.over_everything():
        _, _, result = compiled(
            name, watch, pairs, "stated" if script is shifted_stated else "token", say=watch.say,
            splits=change({part: list(own) for part, own in meant.items()}), **options,
        )  # fmt: skip
    assert_no_leak(watch, result, meant)


def test_without_a_leak_nothing_is_found(monkeypatch):
    leaky("token_thresholds", monkeypatch, lambda splits: splits)


@pytest.mark.parametrize("name", HELPED)
def test_a_test_pair_among_those_to_learn_from_is_found(name, monkeypatch):
    with pytest.raises(AssertionError):
        leaky(name, monkeypatch, lambda splits: {**splits, "train": [*splits["train"], splits["test"][0]]})


@pytest.mark.parametrize("name", ["labelled", "gepa", "reanchor"])
def test_a_test_pair_among_those_to_choose_on_is_found(name, monkeypatch):
    with pytest.raises(AssertionError):
        leaky(name, monkeypatch, lambda splits: {**splits, "validation": [*splits["validation"], splits["test"][0]]})


@pytest.mark.parametrize("name", ["simba", "token_thresholds", "staged_mipro"])
def test_learning_from_the_pairs_to_choose_on_is_found(name, monkeypatch):
    with pytest.raises(AssertionError):
        leaky(name, monkeypatch, lambda splits: {**splits, "train": [*splits["train"], splits["validation"][0]]})


def test_a_note_that_stands_in_the_prompt_of_its_own_pair_is_found(monkeypatch):
    plain = searching.evaluate

    def told(program, pairs, threads):
        asked = [QAPair(p.id, f"{p.question} {p.notes['legal']}", p.answer, gold=p.gold) for p in pairs]
        return plain(program, asked, threads)

    monkeypatch.setattr(searching, "evaluate", told)
    with pytest.raises(AssertionError, match="prompt while 'measuring the uncompiled"):
        leaky("token_thresholds", monkeypatch, lambda splits: splits)


def test_a_choice_by_the_test_pairs_is_found(monkeypatch):
    plain = searching.measured_on

    def peeking(plan, program, split):
        return plain(plan, program, "test" if program is not plan.program else split)

    monkeypatch.setattr(searching, "measured_on", peeking)
    with pytest.raises(AssertionError, match=re.escape("while 'measuring labelled 1")):
        leaky("labelled", monkeypatch, lambda splits: splits)


def test_a_fold_that_learns_from_its_own_test_pairs_is_found(monkeypatch):
    pairs, watch = canary_pairs(18), Watch(HELPED["labelled"][0])
    for room in (compiling, nested):
        monkeypatch.setattr(room, "check_splits", lambda *_: None)
    plain = nested.stratified_folds
    monkeypatch.setattr(nested, "stratified_folds", lambda *a: [{**f, "train": pairs} for f in plain(*a)])
    result, settings = nested_compilation("labelled", watch, pairs)
    with pytest.raises(AssertionError, match="folds"):
        assert_folds_hold(watch, result, pairs, settings.split.salt)


def test_a_fold_whose_cuts_are_fitted_on_another_folds_pairs_is_found(monkeypatch):
    pairs, watch = canary_pairs(18), Watch(HELPED["token_thresholds"][0])
    plain = searching._cut
    first = []

    def carried_over(plan, program):
        first.append(plan.splits["train"])
        plan = searching.Plan(**{**vars(plan), "splits": {**plan.splits, "train": first[0]}})
        return plain(plan, program)

    monkeypatch.setattr(searching, "_cut", carried_over)
    result, settings = nested_compilation("token_thresholds", watch, pairs)
    with pytest.raises(AssertionError, match="token_thresholds: searching"):
        assert_folds_hold(watch, result, pairs, settings.split.salt)


def test_nested_folds_measure_the_recipe_over_all_pairs():
    script, options = HELPED["gepa"]
    settings = OptimizerSettings(name="gepa", split=SplitSettings(folds=3), **{**QUICK, **options, "rounds": 4})
    result = compile_nested(auditor(scripted(script)), gold_pairs(18), settings)
    assert result.measured.before.value("joint_accuracy") < 0.5 < 0.9 < result.measured.after.value("joint_accuracy")
    document = result.to_dict()
    assert document["test"]["after"]["n"] == 18
    assert len(document["folds"]) == 3
