"""DSPy's optimisers meet an ordinary program."""

import json

import dspy
import pytest

from scripted import kind_of, scripted_lm, text_of
from systems.audit.parts import PAIR, auditor, by_kind, labels


def examples(count, **gold):
    pairs = [{"question": f"question {n}?", "answer": f"answer {n}."} for n in range(count)]
    return [dspy.Example(**pair, **gold).with_inputs("question", "answer") for pair in pairs]


def turns(lm, kind):
    return next(request.messages for request in lm.requests if kind_of(request) == kind)


def test_labelled_demonstrations_reach_the_phases_whose_labels_they_hold():
    lm = scripted_lm()
    compiled = dspy.LabeledFewShot(k=2).compile(auditor(lm), trainset=examples(3, medical_risk=True, legal_risk=False))
    compiled(**PAIR)
    shown = turns(lm, "initial")
    assert [message.role for message in shown] == ["user", "assistant", "user", "assistant", "user"]
    assert json.loads(text_of(shown[1])) == {"medical_risk": True, "legal_risk": False}
    assert len(turns(lm, "verification")) == 1


@pytest.mark.parametrize("ablation", ["full", "ma", "mpa"])
def test_bootstrapped_demonstrations_hold_whole_replies(ablation):
    lm = scripted_lm()
    program = auditor(lm, ablation=ablation)
    optimiser = dspy.BootstrapFewShot(
        metric=lambda example, prediction, trace=None: prediction.medical_risk is True,
        max_bootstrapped_demos=1,
        max_labeled_demos=0,
    )
    compiled = optimiser.compile(program, trainset=examples(1))
    lm.requests.clear()
    compiled(**PAIR)
    for kind in {kind_of(request) for request in lm.requests}:
        shown = turns(lm, kind)
        assert [message.role for message in shown] == ["user", "assistant", "user"]
        fields = next(r for r in lm.requests if kind_of(r) == kind).config.response_format["schema"]["properties"]
        assert list(json.loads(text_of(shown[1]))) == list(fields)
        assert "question 0?" in text_of(shown[0])


def test_an_undetermined_teacher_leaves_no_demonstration_of_the_missing_label():
    lm = scripted_lm(by_kind(initial=labels(legal="unclear")))
    optimiser = dspy.BootstrapFewShot(metric=lambda *_: True, max_bootstrapped_demos=1, max_labeled_demos=0)
    compiled = optimiser.compile(auditor(lm, ablation="ek", system="baseline"), trainset=examples(1))
    lm.requests.clear()
    compiled(**PAIR)
    assert "legal_risk" not in json.loads(text_of(lm.requests[0].messages[1]))


def test_a_compiled_program_survives_saving(tmp_path):
    lm = scripted_lm()
    optimiser = dspy.BootstrapFewShot(metric=lambda *_: True, max_bootstrapped_demos=1, max_labeled_demos=0)
    with dspy.context(lm=lm):
        compiled = optimiser.compile(auditor(None), trainset=examples(1))
        compiled.save(str(tmp_path / "program.json"))
        loaded = auditor(None)
        loaded.load(str(tmp_path / "program.json"))
        seen = []
        for program in (compiled, loaded):
            lm.requests.clear()
            program(question="new?", answer="new.")
            seen.append(sorted((r.system, tuple(text_of(m) for m in r.messages)) for r in lm.requests))
    assert seen[0] == seen[1]
    assert all(len(messages) == 3 for _, messages in seen[0])
