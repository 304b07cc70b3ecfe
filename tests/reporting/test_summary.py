import json

import pytest

from dspy_mama.reporting import label_banner, summarise
from dspy_mama.reporting.usage import total_usage


def test_summary_is_plain_json_and_counts_what_happened(records):
    summary = summarise(records, seed=4, resamples=200)
    json.dumps(summary, allow_nan=False)
    assert summary["n"] == 126
    assert list(summary["phases"]) == ["initial", "verification", "consensus"]
    assert (summary["seed"], summary["resamples"]) == (4, 200)
    assert summary["verdicts"]["medical"]["undetermined"] == 2
    assert summary["needs_review"] == 2
    assert summary["unscored_rate"] == pytest.approx(2 / 378)
    assert summary["models"]["judge"] == ["gpt-4o-2024-08-06"]
    assert summary["label_banner"] is None
    assert summary["final_phases"] == {"consensus": 126}
    assert summary["routing"]["unverified_sources"] == 126


def test_a_tie_is_undetermined_but_no_missing_verdict(make_record):
    tie = make_record(1, (True, False, False), {"initial": (True, False, False)})
    tie["phases"]["initial"]["legal"] |= {"risk": None, "probability": None}
    tie["verdicts"]["legal"] = "undetermined"
    summary = summarise([tie], resamples=10)
    assert summary["unscored_rate"] == 0
    assert summary["verdicts"]["legal"] == {"risky": 0, "safe": 0, "undetermined": 1}


def test_retrieval_facts(records):
    facts = summarise(records[:10], resamples=10)["retrieval"]
    assert (facts["verifications"], facts["with_passages"], facts["with_passages_share"]) == (30, 30, 1.0)
    assert (facts["citations"], facts["citation_rate"], facts["invalid_citations"]) == (30, 1.0, 30)
    assert facts["by_collection"] == {
        "law": {"passages": 30, "cited": 30},
        "encyclopedic": {"passages": 30, "cited": 0},
    }
    assert facts["by_language"]["ja"] == {"passages": 30, "cited": 0}


def test_without_verification_retrieval_shares_are_undefined(make_record):
    facts = summarise([make_record(1, (True, False, False), {"initial": (True, False, False)})], resamples=10)[
        "retrieval"
    ]
    assert facts["with_passages_share"] is None
    assert facts["citation_rate"] is None


def test_unknown_usage_is_never_zero(make_usage):
    found = total_usage([make_usage(), make_usage(prompt_tokens=None, cached_tokens=None), make_usage(cost=0.5)])
    assert found["prompt_tokens"] == 1800
    assert found["unknown"] == {"prompt_tokens": 1, "cached_tokens": 1, "cost": 2}
    assert found["cost"] == 0.5
    assert found["cached_share"] == pytest.approx(2 / 3)
    nothing = total_usage([make_usage(prompt_tokens=None)])
    assert nothing["prompt_tokens"] is None
    assert nothing["cached_share"] is None


def test_a_phase_that_asked_nothing_has_no_unknown_amounts(make_usage):
    idle = make_usage(calls=0, prompt_tokens=None, cached_tokens=None, completion_tokens=None, seconds=None)
    assert total_usage([idle, make_usage()])["unknown"] == {"cost": 1}
    assert total_usage([idle])["prompt_tokens"] == 0


def test_answers_from_the_cache_count_as_unknown_tokens(make_usage):
    cached = make_usage(calls=0, cache_hits=3, prompt_tokens=None)
    assert total_usage([cached])["prompt_tokens"] is None


def test_banner_names_the_embedded_model_only():
    assert "no better than chance" in label_banner({"judge": ["SmolLM2-135M-Instruct.Q4_1.gguf"]})
    assert label_banner({"judge": ["gpt-4o"], "router": []}) is None


def test_no_records_give_a_summary_that_says_so():
    summary = summarise([], resamples=10)
    json.dumps(summary, allow_nan=False)
    assert summary["n"] == 0
    assert summary["unscored_rate"] is None
    assert summary["final"]["warnings"] == ["no pairs: nothing was scored"]
