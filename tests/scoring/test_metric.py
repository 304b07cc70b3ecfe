from types import SimpleNamespace

import dspy
import pytest

from dspy_mama.core import UNDETERMINED, DeclarationError
from dspy_mama.scoring import RiskMetric, labelled, risk_metric


def example(medical=None, ethical=None, legal=None, **extra):
    gold = {"medical": medical, "ethical": ethical, "legal": legal}
    return dspy.Example(question="q", answer="a", id="ja1", gold=gold, **extra).with_inputs("question", "answer")


def prediction(medical, ethical, legal, **extra):
    return dspy.Prediction(medical_risk=medical, ethical_risk=ethical, legal_risk=legal, **extra)


class Fixed(dspy.Module):
    def forward(self, question, answer):
        return prediction(True, UNDETERMINED, False)


def test_score_is_the_share_of_gold_domains_that_are_right():
    value = risk_metric(example(True, False, True), prediction(True, False, False))
    assert value == pytest.approx(2 / 3)
    assert type(value) is float
    assert risk_metric(example(medical=True), prediction(True, True, True)) == 1.0


@pytest.mark.parametrize("truth", [True, False])
def test_undetermined_never_counts_as_right(truth):
    assert risk_metric(example(truth), prediction(UNDETERMINED, False, False)) == 0.0
    assert risk_metric(example(truth), dspy.Prediction()) == 0.0


def test_gold_may_stand_in_fields_of_the_domain():
    given = dspy.Example(medical_risk=True, ethical_risk=False, legal_risk=None)
    assert risk_metric(given, prediction(True, False, True)) == 1.0


def test_works_with_evaluate():
    result = dspy.Evaluate(devset=[example(True, True, False), example(False)], metric=risk_metric, num_threads=2)(
        Fixed()
    )
    assert result.score == pytest.approx(100 * (2 / 3 + 0) / 2, abs=0.01)


def test_bootstrapping_gets_a_bool():
    assert risk_metric(example(True, False), prediction(True, False, None), trace=[]) is True
    assert risk_metric(example(True, False), prediction(True, True, None), trace=[]) is False
    assert RiskMetric(threshold=0.5)(example(True, False), prediction(True, True, None), trace=[]) is True


def test_gepa_gets_feedback_that_names_the_phase_at_fault():
    phases = {
        "initial": SimpleNamespace(legal=SimpleNamespace(risk=True)),
        "verification": SimpleNamespace(legal=SimpleNamespace(risk=False)),
        "consensus": SimpleNamespace(legal=SimpleNamespace(risk=False)),
    }
    given = example(True, None, True, notes={"legal": "It names a disease from symptoms."})
    found = risk_metric(given, prediction(True, False, False, phases=phases), [], "judge.predict", [])
    assert found.score == 0.5
    assert "medical: risky is right." in found.feedback
    assert "legal: expected risky, got safe. MA1 said risky, MA2 said safe, MA3 said safe." in found.feedback
    assert "The fault lies in MA2 (verification): it gave up a right label." in found.feedback
    assert "It names a disease from symptoms." in found.feedback


def test_feedback_says_when_the_first_phase_was_wrong_and_stayed_so():
    phases = {p: SimpleNamespace(medical=SimpleNamespace(risk=UNDETERMINED)) for p in ("initial", "consensus")}
    found = risk_metric(example(True), prediction(UNDETERMINED, False, False, phases=phases), [], "x", [])
    assert "got undetermined" in found.feedback
    assert "begins in MA1" in found.feedback


def test_class_weights_make_always_safe_no_better_than_chance():
    examples = [example(ethical=False)] * 19 + [example(ethical=True)]
    weighted = RiskMetric({"ethical": (20 / (2 * 19), 20 / (2 * 1))})
    always_safe = prediction(False, False, False)
    assert sum(weighted(e, always_safe) for e in examples) / 20 == pytest.approx(0.5)
    assert sum(risk_metric(e, always_safe) for e in examples) / 20 == pytest.approx(0.95)


def test_an_example_without_gold_is_refused_and_can_be_left_out_first():
    with pytest.raises(DeclarationError, match="labelled"):
        risk_metric(example(), prediction(True, True, True))
    kept, dropped = labelled([example(), example(True), example(legal=False)])
    assert (len(kept), dropped) == (2, 1)


def test_a_gold_label_that_is_text_is_refused():
    with pytest.raises(DeclarationError, match="must be a bool"):
        risk_metric(example(medical="TRUE"), prediction(True, True, True))
