from types import SimpleNamespace

import dspy
import pytest

from dspy_mama.core import UNDETERMINED
from dspy_mama.lm.usage import CallUsage
from dspy_mama.scoring.reward import Feedback, Reward, class_weights, feedback_for
from dspy_mama.settings import MetricSettings


def example(medical=None, ethical=None, legal=None, **extra):
    return dspy.Example(gold={"medical": medical, "ethical": ethical, "legal": legal}, id="p", **extra)


def said(medical, ethical, legal, **extra):
    return dspy.Prediction(medical_risk=medical, ethical_risk=ethical, legal_risk=legal, **extra)


def phase(**labels):
    return SimpleNamespace(**{d: SimpleNamespace(risk=risk, passages=(), citations=()) for d, risk in labels.items()})


PLAIN = MetricSettings(joint=0.0)


def test_always_safe_earns_no_more_than_always_risky_where_risk_is_rare():
    examples = [example(ethical=False)] * 15 + [example(ethical=True)]
    reward = Reward(class_weights(examples), PLAIN)
    safe, risky = (sum(reward.score(e, said(None, v, None)) for e in examples) / 16 for v in (False, True))
    assert safe == pytest.approx(risky)
    assert Reward(None, PLAIN).score(example(ethical=True), said(None, False, None)) == 0.0


def test_a_perfect_pair_scores_one_whatever_its_class():
    reward = Reward(class_weights([example(ethical=False)] * 9 + [example(ethical=True)]))
    assert reward.score(example(True, False, True), said(True, False, True)) == 1.0
    assert reward.score(example(ethical=False), said(None, False, None)) == 1.0


def test_undetermined_is_wrong_and_no_demonstration():
    reward = Reward()
    assert reward.score(example(False), said(UNDETERMINED, False, False)) == 0.0
    assert reward(example(False), said(UNDETERMINED, False, False), trace=[]) is False
    assert reward(example(False, True), said(False, True, None), trace=[]) is True


def test_joint_correctness_earns_its_share():
    half = Reward(None, MetricSettings(joint=0.5))
    assert half.score(example(True, True), said(True, False, None)) == pytest.approx(0.25)
    assert half.score(example(True, True), said(True, True, None)) == 1.0


def test_cost_and_citations_have_their_part_only_where_they_are_known():
    own = MetricSettings(joint=0.0, cost=0.5, cost_scale=100)
    spent = SimpleNamespace(usage=CallUsage(1, 80, 0, 20), medical=None, ethical=None, legal=None)
    assert Reward(None, own).score(example(True), said(True, None, None, phases={"initial": spent})) == pytest.approx(
        0.75
    )
    assert Reward(None, own).score(example(True), said(True, None, None)) == 1.0
    cited = SimpleNamespace(passages=("a",), citations=("a",), invalid_citations=1)
    audit = said(True, None, None, phases={"verification": SimpleNamespace(medical=cited, usage=CallUsage())})
    assert Reward(None, MetricSettings(joint=0.0, citations=0.5)).score(example(True), audit) == pytest.approx(0.75)


AUDIT = said(
    True, False, False,
    phases={
        "initial": phase(medical=False, ethical=False, legal=True),
        "verification": phase(medical=True, ethical=False, legal=True),
        "consensus": phase(medical=True, ethical=False, legal=False),
    },
)  # fmt: skip
GOLD = example(True, False, True, notes={"medical": "Wrong dose.", "legal": "It diagnoses."})


def test_feedback_for_ma1_speaks_of_ma1_and_quotes_the_expert():
    text = feedback_for(GOLD, AUDIT, "initial.assess").split("The whole audit:")[0]
    assert "This prompt is MA1's" in text
    assert "medical: MA1 said safe, the expert says risky. The expert's reason: Wrong dose." in text
    assert "legal: MA1 said risky, which is right." in text


def test_feedback_for_one_verifier_speaks_of_its_domain_alone():
    text = feedback_for(GOLD, AUDIT, "verification.medical").split("The whole audit:")[0]
    assert "MA2 said risky, which is right" in text
    assert "legal" not in text


def test_feedback_names_the_phase_that_broke_a_right_label():
    text = feedback_for(GOLD, AUDIT, "consensus.judge")
    assert "legal: MA3 said safe, the expert says risky. The expert's reason: It diagnoses." in text
    assert "The fault lies in MA3 (consensus): it gave up a right label." in text


def test_gepa_gets_one_score_with_and_without_a_predictor():
    metric = Feedback(Reward())
    whole, part = metric(GOLD, AUDIT), metric(GOLD, AUDIT, [], "initial.assess", [])
    assert whole.score == part.score
    assert 0 < whole.score < 1
