"""A trained head without any LM, and as one more voice before MA3."""

import copy
import logging

import numpy as np
import pytest

from dspy_mama.core.cases import DOMAINS, QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import UNDETERMINED
from dspy_mama.core.ports import RiskScorer
from dspy_mama.optimize import load_program, save_program
from dspy_mama.scoring.logistic_head import DomainHead, LogisticHead, pair_hash
from dspy_mama.systems.audit import Exemplar, RiskAuditor, audit_record
from scripted import kind_of, scripted_lm, user_of
from systems.audit.parts import PAIR, auditor, kinds


class TwoNumbers:
    id, dimension = "two-1", 2

    def __init__(self):
        self.texts = []

    def embed_documents(self, texts):
        self.texts += texts
        return np.array([[1.0, 0.0]] * len(texts), dtype=np.float32)

    def embed_query(self, text):
        return self.embed_documents([text])[0]


FIGURE = {"auc": {"value": 0.7, "ci95": [0.52, 0.85]}}


def small_head(domains=DOMAINS, **changes):
    own = {d: DomainHead(np.array([float(n), 0.0]), 0.0, 0.5) for n, d in enumerate(domains, start=-1)}
    figures = {"figures": {"embedding": dict.fromkeys(domains, FIGURE)}}
    values = {"embedder": "two-1", "dimension": 2, "text": "answer", "domains": own, "limits": ""}
    values |= {"training": {"questions": 12, "labels": "not by experts"}, "cross_validation": figures}
    return LogisticHead(**{**values, **changes})


@pytest.fixture
def head_file(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(small_head().to_json(), "utf-8")
    return path


def exemplar(head=None):
    embedder = TwoNumbers()
    return Exemplar(head or small_head(), "mine", lambda: embedder), embedder


def test_the_shipped_head_audits_without_any_lm():
    audit = RiskAuditor.from_preset(system="exemplar")(**PAIR)
    for domain in DOMAINS:
        assert isinstance(audit[f"{domain}_risk"], bool)
        assert 0 < audit[f"{domain}_probability"] < 1
        assert "no LM" in audit[f"{domain}_reason"]
        assert "labels not by experts" in audit[f"{domain}_reason"]
        assert "AUC" in audit[f"{domain}_reason"]
    assert (audit.final_phase, audit.needs_review) == ("initial", False)
    record = audit_record(QAPair("a", **PAIR), audit)
    assert record["phases"]["initial"]["legal"]["probability_source"] == "model"
    assert record["models"]["assessor"].startswith("exemplar:shipped-")


def test_the_head_reads_what_it_was_trained_to_read():
    scorer, embedder = exemplar()
    assert scorer.score("the question", "the answer")["legal"] == (pytest.approx(1 / (1 + np.exp(-1))), True)
    assert embedder.texts == ["the answer"]
    scorer, embedder = exemplar(small_head(text="pair"))
    scorer.score("the question", "the answer")
    assert embedder.texts == ["the question\nthe answer"]
    assert isinstance(scorer, RiskScorer)


def test_of_a_pair_that_it_learnt_from_it_says_what_was_said_out_of_fold():
    said = {"medical": (0.9, True), "ethical": (0.1, False), "legal": (0.2, False)}
    scorer, embedder = exemplar(small_head(out_of_fold={pair_hash("q", "a"): said}))
    assert scorer.score("q", "a") == said
    assert embedder.texts == []


def test_a_domain_that_the_head_does_not_know_is_undetermined_and_goes_to_review(tmp_path, monkeypatch):
    path = tmp_path / "one.json"
    path.write_text(small_head(domains=("medical",)).to_json(), "utf-8")
    program = RiskAuditor.from_preset(system="exemplar", head=str(path))
    monkeypatch.setattr(program.initial.scorer, "_make", TwoNumbers)
    audit = program(**PAIR)
    assert audit.legal_risk is UNDETERMINED
    assert audit.needs_review is True


def test_vectors_of_another_embedder_are_refused():
    scorer, _ = exemplar(small_head(embedder="two-2"))
    with pytest.raises(DeclarationError, match="two-1 is installed"):
        scorer.score("q", "a")
    with pytest.raises(DeclarationError, match="does not run in this process"):
        Exemplar(small_head(), "mine").score("q", "a")


def test_thresholds_cut_its_probability():
    low = RiskAuditor.from_preset(system="exemplar", thresholds=dict.fromkeys(DOMAINS, 0.0))(**PAIR)
    high = RiskAuditor.from_preset(system="exemplar", thresholds=dict.fromkeys(DOMAINS, 1.0))(**PAIR)
    assert all(low[f"{domain}_risk"] is True and high[f"{domain}_risk"] is False for domain in DOMAINS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"system": "exemplar", "ablation": "ma"}, "no part to switch off"),
        ({"system": "exemplar", "exemplar": True}, "no MA3 to speak to"),
        ({"system": "baseline", "ablation": "mpa", "exemplar": True}, "no LM reaches a consensus"),
        ({"system": "baseline", "consensus": "majority", "exemplar": True}, "no LM reaches a consensus"),
        ({"system": "exemplar", "head": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, said):
    with pytest.raises(DeclarationError, match=said):
        RiskAuditor.from_preset(**arguments)


def judge_prompt(program, lm):
    program(**PAIR)
    (judge,) = [request for request in lm.requests if kind_of(request) == "consensus"]
    return user_of(judge)


def test_ma3_hears_the_voice_only_where_it_is_asked_for(head_file, monkeypatch):
    lm = scripted_lm()
    assert "statistical classifier" not in judge_prompt(auditor(lm, "baseline"), lm)
    lm = scripted_lm()
    program = auditor(lm, "baseline", exemplar=True, head=str(head_file))
    monkeypatch.setattr(program.consensus.voice, "_make", TwoNumbers)
    prompt = judge_prompt(program, lm)
    for domain, chance in zip(DOMAINS, ("0.27", "0.50", "0.73"), strict=True):
        part = prompt.split(f"{domain} domain")[1].split(" domain")[0]
        (line,) = [line for line in part.splitlines() if "statistical classifier" in line]
        assert line == (
            "- statistical classifier (reads no meaning, gives no reason; learnt from 12 questions, labels not by "
            f"experts; weak evidence): probability of risk {chance}"
        )
    assert kinds(lm).count("consensus") == 1


def test_the_other_phases_do_not_hear_it(head_file, monkeypatch):
    lm = scripted_lm()
    program = auditor(lm, "rag", exemplar=True, head=str(head_file))
    monkeypatch.setattr(program.consensus.voice, "_make", TwoNumbers)
    program(**PAIR)
    heard = {kind_of(request) for request in lm.requests if "statistical classifier" in user_of(request)}
    assert heard == {"consensus"}


def test_copies_share_the_head():
    program = RiskAuditor.from_preset(system="exemplar")
    assert copy.deepcopy(program).initial.scorer is program.initial.scorer
    assert program.deepcopy().initial.scorer is program.initial.scorer


def test_it_is_saved_and_loaded_as_any_program(tmp_path, caplog):
    program = RiskAuditor.from_preset(system="exemplar", thresholds={"legal": 0.9})
    save_program(program, tmp_path / "program.json")
    with caplog.at_level(logging.WARNING):
        back = load_program(tmp_path / "program.json")
    one, two = program(**PAIR), back(**PAIR)
    assert [one[f"{d}_probability"] for d in DOMAINS] == [two[f"{d}_probability"] for d in DOMAINS]
    assert back.thresholds == {"legal": 0.9}
