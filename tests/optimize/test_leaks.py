"""No demonstration, feedback, proposal or cut saw a test pair: every prompt of the search is read."""

import pytest

from dspy_mama.datasets.stratified import stratified_folds
from dspy_mama.optimize import compile_nested, compile_program, thresholds
from dspy_mama.scoring import reward
from dspy_mama.settings import OptimizerSettings, SplitSettings
from optimize.compile_parts import auditor, gold_pairs, proposes, scripted, shifted_stated
from optimize.test_compiling import HELPED, QUICK
from scripted import system_of, text_of


def whole(request):
    return "\n".join([system_of(request), *(text_of(message) for message in request.messages)])


class Watch:
    """Keeps every prompt with the stage in which it was sent."""

    def __init__(self, script):
        self.script = script() if isinstance(script, type) else script
        self.stage = ""
        self.seen = []

    def __call__(self, request):
        self.seen.append((self.stage, whole(request), proposes(request)))
        return self.script(request)

    def say(self, line):
        self.stage = line


@pytest.fixture
def scored(monkeypatch):
    """Ids of the pairs that any reward or feedback was given on."""
    ids = []
    plain = reward.Reward.score
    monkeypatch.setattr(reward.Reward, "score", lambda self, e, p: ids.append(e.id) or plain(self, e, p))
    return ids


@pytest.fixture
def fitted(monkeypatch):
    ids = []
    from dspy_mama.optimize import searching

    plain = thresholds.fit_thresholds
    monkeypatch.setattr(
        searching, "fit_thresholds", lambda labels, target: ids.extend(labels.ids) or plain(labels, target)
    )
    return ids


@pytest.mark.parametrize("name", HELPED)
def test_no_test_pair_reaches_a_search_or_a_prompt_that_is_kept(name, scored, fitted):
    script, options = HELPED[name]
    watch = Watch(script)
    lm = scripted(watch)
    program = auditor(lm, probability="stated" if script is shifted_stated else "token")
    result = compile_program(program, gold_pairs(), name, say=watch.say, **{**QUICK, **options, "keep": "always"})
    test = {pair.id: pair.question for pair in result.splits["test"]}
    train = {pair.id for pair in result.splits["train"]}
    assert len(test) == 12
    assert not set(scored) & set(test)
    assert not set(fitted) & set(test)
    assert set(fitted) <= train
    for stage, prompt, _ in watch.seen:
        asked = [question for question in test.values() if question in prompt]
        if not stage.startswith("looking at the"):
            assert asked == []
        # A test pair stands in the prompt that judges it, and in no other.
        assert len(asked) <= 1
    shown = repr([(p.signature.instructions, p.demos) for _, p in result.program.named_predictors()])
    assert not any(question in shown for question in test.values())


@pytest.mark.parametrize("name", ["labelled", "bootstrap", "gepa", "token_thresholds"])
def test_validation_pairs_are_never_shown_as_demonstrations_or_to_the_reflecting_lm(name):
    script, options = HELPED[name]
    watch = Watch(script)
    result = compile_program(auditor(scripted(watch)), gold_pairs(), name, **{**QUICK, **options, "keep": "always"})
    questions = [pair.question for pair in result.splits["validation"]]
    proposals = "\n".join(prompt for _, prompt, proposed in watch.seen if proposed)
    shown = repr([p.demos for _, p in result.program.named_predictors()])
    assert not any(question in proposals or question in shown for question in questions)


@pytest.mark.parametrize("name", HELPED)
def test_in_nested_folds_no_fold_learns_from_its_own_test_pairs(name, scored, fitted):
    script, options = HELPED[name]
    watch = Watch(script)
    options = {**QUICK, **options, "trials": 2, "candidates": 1, "rounds": 1}
    settings = OptimizerSettings(name=name, keep="always", split=SplitSettings(folds=2), **options)
    program = auditor(scripted(watch), probability="stated" if script is shifted_stated else "token")
    pairs = gold_pairs(18)
    result = compile_nested(program, pairs, settings, say=watch.say)
    outer = stratified_folds(pairs, 2, settings.split.salt)
    assert sorted(p.id for fold in result.folds for p in fold.splits["test"]) == sorted(p.id for p in pairs)
    for fold, expected in zip(result.folds, outer, strict=True):
        test = {pair.id: pair.question for pair in fold.splits["test"]}
        assert set(test) == {pair.id for pair in expected["test"]}
        assert not set(test) & {pair.id for part in ("train", "validation") for pair in fold.splits[part]}
        shown = repr([(p.signature.instructions, p.demos) for _, p in fold.program.named_predictors()])
        assert not any(question in shown for question in test.values())
    assert len(result.measured.after.records) == len(pairs)
    assert result.final.test is None


def test_nested_folds_measure_the_recipe_over_all_pairs():
    script, options = HELPED["gepa"]
    settings = OptimizerSettings(name="gepa", split=SplitSettings(folds=3), **{**QUICK, **options, "rounds": 6})
    result = compile_nested(auditor(scripted(script)), gold_pairs(30), settings)
    assert result.measured.before.value("joint_accuracy") < 0.5 < 0.9 < result.measured.after.value("joint_accuracy")
    document = result.to_dict()
    assert document["test"]["after"]["n"] == 30
    assert len(document["folds"]) == 3
