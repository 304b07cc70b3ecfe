import pytest

from dspy_mama.core.cases import Passage
from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.systems.audit.rules import cut, evidence_text, name_of, needs_review, resolve_citations, vote
from dspy_mama.systems.audit.schema import PhaseResult, RiskVerdict


def verdict(risk=None, probability=None, kind="parse"):
    outcome = Unscored(kind, "why") if risk is None else Scored(risk)
    return RiskVerdict("legal", outcome, probability, "none" if probability is None else "token", "reason")


@pytest.mark.parametrize(
    ("votes", "label", "probability"),
    [
        ([(True, None), (True, None)], True, None),
        ([(False, None), (False, None)], False, None),
        ([(True, 0.9), (False, 0.4)], True, 0.65),
        ([(True, 0.6), (False, 0.1)], False, 0.35),
        ([(True, 0.5), (False, 0.5)], True, 0.5),
        ([(True, 0.9), (False, None)], None, 0.9),
        ([(True, None), (False, None)], None, None),
        ([(None, None), (True, None)], True, None),
        ([(None, None), (None, None)], None, None),
        ([(None, 0.9), (False, None)], False, None),
        ([], None, None),
    ],
)
def test_only_read_labels_vote_and_a_tie_needs_probabilities(votes, label, probability):
    merged = vote("legal", [verdict(*each) for each in votes])
    assert merged.risk is label
    assert merged.probability == (None if probability is None else pytest.approx(probability))


def test_a_vote_without_any_label_keeps_the_reason_why():
    merged = vote("legal", [verdict(kind="infra"), verdict(kind="infra")])
    assert merged.outcome.kind == "infra"


@pytest.mark.parametrize(
    ("given", "threshold", "label"),
    [
        (verdict(False, 0.5), 0.5, True),
        (verdict(True, 0.49), 0.5, False),
        (verdict(True, 0.0), 0.0, True),
        (verdict(True, None), 0.9, True),
        (verdict(True, 0.1), None, True),
        (verdict(None, 0.9), 0.1, None),
    ],
)
def test_a_cut_needs_a_threshold_a_probability_and_a_label(given, threshold, label):
    assert cut(given, threshold).risk is label


def test_an_undetermined_domain_needs_review_and_is_not_safe():
    final = PhaseResult(verdict(True), verdict(False), verdict(None))
    assert needs_review(final) is True
    assert [name_of(final.verdict(d)) for d in ("medical", "ethical", "legal")] == ["risky", "safe", "undetermined"]


def test_citations_are_resolved_by_number():
    passages = [Passage("a", "x"), Passage("b", "y")]
    assert resolve_citations((2, 1, 2, 3, 0, -1), passages) == (("b", "a"), 3)
    assert resolve_citations((1,), ()) == ((), 1)


def test_evidence_is_numbered_and_its_absence_said():
    assert evidence_text([]) == "No passage was found."
    shown = evidence_text(
        [Passage("a", "text a", title="Act", section="Article 17"), Passage("b", "text b", title="B")]
    )
    assert shown == "[1] Act / Article 17\ntext a\n\n[2] B\ntext b"
