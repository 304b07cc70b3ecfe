import json
from dataclasses import replace

import pytest

from dspy_mama.core.cases import QAPair
from dspy_mama.systems.audit import ABLATIONS, audit_record
from scripted import scripted_lm
from systems.audit.parts import PAIR, MemoryRetriever, auditor, by_kind, labels

GOLD = QAPair("ja1", **PAIR, language="en", gold={"medical": True}, notes={"medical": "dose"}, source="sample")


def record(lm, ablation="full", **overrides):
    return audit_record(GOLD, auditor(lm, ablation=ablation, **overrides)(**PAIR))


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_a_record_is_plain_data_with_the_phases_that_ran(ablation):
    row = record(scripted_lm(), ablation)
    assert json.loads(json.dumps(row)) == row
    assert set(row["usage"]) == {"routing", *row["phases"]}
    assert all(set(phase) == {"medical", "ethical", "legal"} for phase in row["phases"].values())
    assert row["final_phase"] == list(row["phases"])[-1]


def test_a_record_holds_what_the_report_needs():
    row = record(scripted_lm())
    assert (row["id"], row["source"], row["language"]) == ("ja1", "sample", "en")
    assert row["gold"] == {"medical": True, "ethical": None, "legal": None}
    assert row["notes"] == {"medical": "dose"}
    assert row["verdicts"] == {"medical": "risky", "ethical": "risky", "legal": "risky"}
    assert row["needs_review"] is False
    assert row["models"] == dict.fromkeys(("router", "assessor", "verifier", "judge"), "scripted/a")
    assert row["routing"] == {
        "specialty": "text of specialty", "definition": "text of definition", "source": "text of source",
        "source_verified": False, "scope": "case", "origin": "lm", "outcome": "scored",
    }  # fmt: skip
    legal = row["phases"]["verification"]["legal"]
    assert legal["citations"] == ["legal#1"]
    assert [(p["id"], p["cited"], p["score"]) for p in legal["passages"]] == [
        ("legal#1", True, 0.5), ("legal#2", False, 0.5),
    ]  # fmt: skip
    assert "text" not in legal["passages"][0]
    assert row["usage"]["verification"]["cost"] is None
    assert row["usage"]["verification"]["calls"] == 3


@pytest.mark.parametrize(
    ("ablation", "router", "scope"), [("ma", {}, None), ("full", {"scope": "agnostic"}, "agnostic")]
)
def test_the_scope_of_the_routing_is_told(ablation, router, scope):
    assert record(scripted_lm(), ablation, router=router)["routing"]["scope"] == scope


def test_raw_text_is_kept_only_where_there_is_no_label():
    row = record(scripted_lm(by_kind(consensus=labels(legal="unclear"))))
    missing, read = row["phases"]["consensus"]["legal"], row["phases"]["consensus"]["medical"]
    assert (missing["outcome"], missing["risk"], missing["probability"]) == ("parse", None, None)
    assert "unclear" in missing["raw"]
    assert "\n" not in missing["error"]
    assert (read["outcome"], read["error"], read["raw"]) == ("scored", None, None)
    assert row["verdicts"]["legal"] == "undetermined"
    assert row["needs_review"] is True


class LawRetriever(MemoryRetriever):
    """Passages with everything that a citation needs."""

    async def asearch(self, query, domains):
        facts = {"url": "https://example.org/act", "section": "Article 17", "accessed": "2026-11-30", "licence": "CC0"}
        found = await super().asearch(query, domains)
        return {domain: tuple(replace(p, **facts) for p in passages) for domain, passages in found.items()}


def test_a_cited_passage_can_be_checked_in_the_record_and_in_the_program():
    prediction = auditor(scripted_lm(), retriever=LawRetriever())(**PAIR)
    legal = prediction.phases["verification"].legal
    assert [passage.id for passage in legal.cited] == list(legal.citations) == ["legal#1"]
    assert legal.cited[0].citation == "legal 1, Article 17, https://example.org/act, read on 2026-11-30"
    kept = audit_record(GOLD, prediction)["phases"]["verification"]["legal"]["passages"][0]
    for name in ("id", "title", "section", "url", "accessed", "licence"):
        assert kept[name] == getattr(legal.cited[0], name)
