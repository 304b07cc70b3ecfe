import copy

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.reporting.evidence import evidence_effect, retrieval_facts
from dspy_mama.reporting.evidence_tables import evidence_tables

SAID = {"verification": (True, False, False), "consensus": (True, False, False)}


@pytest.fixture
def run(make_record):
    """Eight records; each verification shows two passages and cites the first."""
    return [make_record(number, (True, False, False), SAID) | {"key": f"k{number}"} for number in range(8)]


def label(record, phase, domain, risk):
    record["phases"][phase][domain]["risk"] = risk


def test_hits_empties_and_citations_are_counted_by_domain(run):
    checks = [record["phases"]["verification"] for record in run]
    for check in checks[:2]:
        check["legal"] |= {"passages": [], "citations": []}
    for check in checks[2:6]:
        check["legal"] |= {"citations": []}
    facts = retrieval_facts(run)
    legal = facts["by_domain"]["legal"]
    assert (legal["searched"], legal["empty"], legal["hit_rate"]) == (8, 2, 0.75)
    assert legal["citation_rate"] == pytest.approx(2 / 6)
    assert facts["by_domain"]["medical"]["citation_rate"] == 1.0
    assert (facts["verifications"], facts["searched"], facts["empty"]) == (24, 24, 2)
    assert facts["by_document"] == {
        "law-1": {"passages": 22, "cited": 22},
        "law-2": {"passages": 22, "cited": 0},
    }
    assert facts["documents"] == 2


def test_verification_without_evidence_is_no_empty_search(run):
    for record in run:
        for check in record["phases"]["verification"].values():
            check |= {"query": None, "passages": [], "citations": []}
    facts = retrieval_facts(run)
    assert (facts["searched"], facts["empty"], facts["hit_rate"], facts["citation_rate"]) == (0, 0, None, None)


def test_the_effect_counts_changed_verdicts_and_which_were_right(run):
    without = copy.deepcopy(run)
    for record in without[:3]:  # evidence turned these to risky, which the gold says they are
        label(record, "consensus", "medical", False)
    label(without[3], "consensus", "legal", True)  # and this one to safe, rightly too
    label(without[4], "consensus", "ethical", None)
    effect = evidence_effect(run, list(reversed(without)))
    assert effect["pairs"] == 8
    medical, ethical, legal = (effect["final"][domain] for domain in ("medical", "ethical", "legal"))
    assert (medical["changed"], medical["to_risky"], medical["to_safe"], medical["other"]) == (3, 3, 0, 0)
    assert (medical["corrected"], medical["broken"], medical["p_value"]) == (3, 0, 0.25)
    assert (legal["to_risky"], legal["to_safe"], legal["changed_share"]) == (0, 1, 0.125)
    assert (ethical["changed"], ethical["other"], ethical["corrected"]) == (1, 1, 1)
    assert effect["verification"]["medical"]["changed"] == 0


def test_without_gold_or_a_common_phase_nothing_is_made_up(run):
    without = copy.deepcopy(run[:4])
    for record in without:
        del record["phases"]["verification"]
    for record in run:
        record["gold"] = {}
    effect = evidence_effect(run, without)
    assert effect["pairs"] == 4
    assert "verification" not in effect
    assert effect["final"]["medical"]["corrected"] is None
    with pytest.raises(DeclarationError, match="share no pair"):
        evidence_effect(run[:2], run[4:])


def test_the_tables_show_facts_and_effect(run):
    document = {"retrieval": retrieval_facts(run), "effect": evidence_effect(run, copy.deepcopy(run))}
    found, sources, effect = evidence_tables(document)
    assert found.rows[-1] == ("all", "24", "24", "0", "1.000", "1.000")
    assert ("document", "law-1", "24", "24") in sources.rows
    assert effect.rows[0][:4] == ("MA2 verification", "medical", "8", "0")
    assert all(len(row) == len(table.header) for table in (found, sources, effect) for row in table.rows)
