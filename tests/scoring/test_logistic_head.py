import json

import numpy as np
import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.scoring.logistic_head import DomainHead, LogisticHead, pair_hash, read_head


def head(**changes):
    own = DomainHead(np.array([1.0, -2.0]), 0.5, 0.4)
    said = {pair_hash("q", "a"): {"medical": (0.25, False)}}
    values = {"embedder": "e-1", "dimension": 2, "text": "answer", "domains": {"medical": own}}
    values |= {"training": {"data": "x"}, "cross_validation": {}, "limits": "few", "out_of_fold": said}
    return LogisticHead(**{**values, **changes})


def test_a_head_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "head.json"
    path.write_text(head().to_json(), "utf-8")
    back = read_head(path)
    assert back.to_json() == head().to_json()
    assert back.hash == head().hash
    assert back.out_of_fold == head().out_of_fold


def test_its_probability_is_that_of_a_logistic_regression_and_does_not_overflow():
    own = head().domains["medical"]
    assert own.probability(np.array([1.0, 0.5], dtype=np.float32)) == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert own.probability(np.array([1e6, 0.0])) == 1.0
    assert own.probability(np.array([-1e6, 0.0])) == 0.0


def test_question_and_answer_cannot_trade_places_in_a_hash():
    assert pair_hash("a\nb", "c") != pair_hash("a", "b\nc")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(kind="program"), "not a trained head"),
        (lambda d: d.update(format=99), "format 99"),
        (lambda d: d.pop("limits"), "damaged head"),
        (lambda d: d.update(domains={}), "damaged head"),
        (lambda d: d["domains"]["medical"].update(weights=[1.0]), "do not fit the 2 dimensions"),
        (lambda d: d["domains"]["medical"].update(cut=2), "damaged head"),
        (lambda d: d["domains"]["medical"].update(weights=[float("nan"), 1.0]), "damaged head"),
        (lambda d: d["out_of_fold"].update(x={"medical": [2, True]}), "damaged head"),
    ],
)
def test_a_damaged_head_is_refused(tmp_path, change, said):
    data = json.loads(head().to_json())
    change(data)
    (tmp_path / "head.json").write_text(json.dumps(data), "utf-8")
    with pytest.raises(DeclarationError, match=said):
        read_head(tmp_path / "head.json")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DeclarationError, match=r"nowhere\.json"):
        read_head(tmp_path / "nowhere.json")
