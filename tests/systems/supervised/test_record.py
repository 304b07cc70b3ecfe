import json

import numpy as np

from dspy_mama.core.cases import DOMAINS
from dspy_mama.datasets import write_predictions
from dspy_mama.scoring import labels_from_records
from dspy_mama.settings import SupervisedSettings
from dspy_mama.systems.supervised import baseline_records, cross_validate, make_learner
from dspy_mama.tracking import final_outcomes
from systems.supervised.synthetic import make_pairs


def records(name="tfidf"):
    found = cross_validate(make_pairs(30), make_learner(SupervisedSettings(name=name, text="answer")))
    return found, baseline_records(found)


def test_scoring_reads_the_records_as_those_of_an_lm():
    found, rows = records()
    labels = labels_from_records(rows)
    assert (labels.predicted[:, 0] == found.domains["medical"].risky).all()
    assert np.allclose(labels.probability[:, 0], found.domains["medical"].probability, atol=1e-6)
    assert (labels.predicted[:, 2] == -1).all()
    assert json.loads(json.dumps(rows)) == rows


def test_a_domain_that_could_not_be_learnt_is_undetermined_and_no_failure_of_the_run():
    _, rows = records()
    assert rows[0]["verdicts"]["legal"] == "undetermined"
    assert rows[0]["phases"]["classifier"]["legal"]["outcome"] == "invalid_input"
    assert "no gold label" in rows[0]["phases"]["classifier"]["legal"]["error"]
    assert final_outcomes(rows[0]) == {"medical": "scored", "ethical": "scored"}
    assert set(rows[0]["phases"]["classifier"]) == set(DOMAINS)


def test_a_constant_states_no_probability():
    _, rows = records("majority")
    verdict = rows[0]["phases"]["classifier"]["medical"]
    assert verdict["probability"] is None
    assert verdict["probability_source"] == "none"
    assert verdict["risk"] is False


def test_the_predictions_file_can_be_scored(tmp_path):
    _, rows = records()
    for suffix in ("jsonl", "csv"):
        path = write_predictions(rows, tmp_path / f"predictions.{suffix}")
        assert path.stat().st_size
    text = (tmp_path / "predictions.csv").read_text("utf-8-sig")
    assert text.splitlines()[0].startswith("id,source")
