"""The shipped head and the sample it learnt from never drift apart."""

import json

import numpy as np
import pytest

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.ids import file_hash
from dspy_mama.core.resources import shipped
from dspy_mama.retrieval import make_embedder
from dspy_mama.scoring.logistic_head import read_head
from dspy_mama.settings import EmbedderSettings
from dspy_mama.systems.audit import WITHOUT_LM
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.exemplar import SAMPLE_LIMITS, train_head, training_pairs

SETTINGS = ["data=sample", "baseline.text=answer"]


@pytest.fixture(scope="module")
def shipped_head():
    return read_head(shipped("data", "exemplar", "head.json"))


@pytest.fixture(scope="module")
def trained():
    settings = compose(SETTINGS)
    return train_head(
        settings, training_pairs(settings, ["en", "ja"]), make_embedder(EmbedderSettings()), SAMPLE_LIMITS
    )


@pytest.mark.slow
def test_training_again_gives_the_shipped_head(shipped_head, trained):
    assert shipped_head.training == trained.training
    for domain in DOMAINS:
        one, two = shipped_head.domains[domain], trained.domains[domain]
        # The embedder's 4-bit code rounds differently from one kind of CPU to another: single weights move by 1 %.
        first, second = np.linalg.norm(one.weights), np.linalg.norm(two.weights)
        assert one.weights @ two.weights / (first * second) == pytest.approx(1, abs=1e-3)
        assert first == pytest.approx(second, rel=0.02)
        assert one.intercept == pytest.approx(two.intercept, abs=0.02)
        assert one.cut == pytest.approx(two.cut, abs=0.05)
    assert shipped_head.out_of_fold.keys() == trained.out_of_fold.keys()
    for key, said in shipped_head.out_of_fold.items():
        for domain in DOMAINS:
            assert said[domain][0] == pytest.approx(trained.out_of_fold[key][domain][0], abs=0.02)


@pytest.mark.slow
def test_its_figures_are_those_of_the_data_with_controls_beside(shipped_head, trained):
    figures, again = shipped_head.cross_validation["figures"], trained.cross_validation["figures"]
    assert set(figures) == {"embedding", "tfidf", "length", "majority"}
    for name in ("embedding", "tfidf", "length"):
        for domain in DOMAINS:
            own, new = figures[name][domain]["auc"], again[name][domain]["auc"]
            assert own["value"] == pytest.approx(new["value"], abs=0.02)
            assert own["ci95"][0] < own["value"] < own["ci95"][1]


def test_it_names_the_file_that_it_learnt_from(shipped_head):
    assert shipped_head.training["files"] == {"pairs.csv": file_hash(shipped("data", "sample", "pairs.csv"))}
    assert shipped_head.training["questions"] == 40
    assert len(shipped_head.out_of_fold) == 80


def test_its_limits_are_said_in_words(shipped_head):
    assert shipped_head.limits == SAMPLE_LIMITS
    assert "no physician, ethicist or lawyer has checked" in shipped_head.limits
    table = shipped("data", "exemplar", "README.md").read_text("utf-8")
    for name in ("embedding", "tfidf", "length"):
        for domain in DOMAINS:
            own = shipped_head.cross_validation["figures"][name][domain]["auc"]
            low, high = own["ci95"]
            shown = f"{own['value']:.2f} ({low:.2f} to {high:.2f})".replace("0.", ".")
            assert shown in table


def test_conf_and_preset_name_the_same_system():
    assert compose(["system=exemplar"]).system == WITHOUT_LM["exemplar"]


def test_it_holds_no_text_of_the_sample():
    data = json.loads(shipped("data", "exemplar", "head.json").read_text("utf-8"))
    assert all(len(key) == 16 for key in data["out_of_fold"])
