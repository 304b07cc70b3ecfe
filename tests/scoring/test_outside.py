from types import SimpleNamespace

import numpy as np
import pytest

from dspy_mama.core import DeclarationError
from dspy_mama.scoring import join_predictions, score_labels, score_notes


def answers(ids, name="file", repeats=None, probability=None, **labels):
    n = len(ids) if ids is not None else len(next(iter((labels or probability).values())))
    return SimpleNamespace(
        name=name,
        ids=None if ids is None else tuple(ids),
        repeats=np.zeros(n, dtype=np.int64) if repeats is None else np.array(repeats),
        labels={d: np.array(v, dtype=np.int8) for d, v in labels.items()},
        probability={d: np.array(v, dtype=float) for d, v in (probability or {}).items()},
    )


GOLD = answers("abc", "gold", medical=[1, 0, 1], ethical=[0, 0, -1], legal=[0, 1, 0])


def test_rows_meet_by_id_whatever_their_order():
    said = answers("cab", medical=[1, 0, 0], ethical=[0, 0, 0], legal=[0, 0, 1])
    labels = join_predictions([GOLD], [said]).labels
    assert labels.ids == ("a", "b", "c")
    assert labels.predicted.tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert labels.gold[:, 0].tolist() == [1, 0, 1]
    assert labels.clusters is None


def test_missing_predictions_stay_and_count_as_unscored_and_strangers_are_left_out():
    said = answers("axy", medical=[1, 0, 0])
    joined = join_predictions([GOLD], [said])
    score = score_labels(joined.labels)
    assert (joined.missing_rows, joined.unknown_ids) == (2, 2)
    assert score["domains"]["medical"]["n"] == 1
    assert score["domains"]["medical"]["unscored"] == {
        "n": 2, "of": 3, "rate": pytest.approx(2 / 3), "with_gold": 2, "by_kind": {"not_run": 2},
    }  # fmt: skip
    assert score["domains"]["medical"]["worst_case"]["accuracy"] == pytest.approx(1 / 3)
    assert any("2 gold rows have no prediction" in note for note in joined.notes)


def test_a_domain_nobody_predicts_is_named_and_not_held_against_the_system():
    joined = join_predictions([GOLD], [answers("abc", medical=[1, 0, 1], legal=[0, 1, 0])])
    score = score_labels(joined.labels)
    assert score["average_domains"] == ["medical", "legal"]
    assert score["domains"]["ethical"]["unscored"]["n"] == 0
    notes = score_notes(joined, score["warnings"])
    assert [note for note in notes if note.startswith("ethical")] == [
        "ethical: no file predicts it, not scored (n = 0)"
    ]


def test_one_file_a_domain_and_a_domain_given_twice():
    files = [answers("ab", "m", medical=[1, 0]), answers("cab", "l", legal=[0, 0, 1])]
    labels = join_predictions([GOLD], files).labels
    assert labels.predicted[:, 0].tolist() == [1, 0, -1]
    assert labels.predicted[:, 2].tolist() == [0, 1, 0]
    with pytest.raises(DeclarationError, match="medical predictions are given twice: m and m"):
        join_predictions([GOLD], [files[0], files[0]])


def test_probabilities_without_labels_are_cut():
    said = answers("abc", probability={"medical": [0.7, 0.4, np.nan]})
    joined = join_predictions([GOLD], [said], threshold=0.7)
    assert joined.labels.predicted[:, 0].tolist() == [1, 0, -1]
    assert "medical: risky where the probability is at least 0.7" in joined.notes
    with pytest.raises(DeclarationError, match="threshold"):
        join_predictions([GOLD], [said], threshold=2)


def test_order_is_used_only_where_it_is_asked_for_and_counts_agree():
    said = answers(None, medical=[1, 0, 1])
    with pytest.raises(DeclarationError, match="--by-order"):
        join_predictions([GOLD], [said])
    assert join_predictions([GOLD], [said], by_order=True).labels.predicted[:, 0].tolist() == [1, 0, 1]
    with pytest.raises(DeclarationError, match="gold has 3, file has 2"):
        join_predictions([GOLD], [answers(None, medical=[1, 0])], by_order=True)


def test_ids_that_never_meet_are_refused_with_examples():
    with pytest.raises(DeclarationError, match="share no id: 'x', 'y' against 'a', 'b', 'c'"):
        join_predictions([GOLD], [answers("xy", medical=[1, 0])])


def test_repeats_of_a_pair_share_gold_and_cluster():
    said = answers("aabbcc", repeats=[0, 1] * 3, medical=[1, 0, 0, 0, 1, 1])
    labels = join_predictions([GOLD], [said]).labels
    assert labels.repeats.tolist() == [0, 0, 0, 1, 1, 1]
    assert labels.gold[:, 0].tolist() == [1, 0, 1, 1, 0, 1]
    assert labels.predicted[:, 0].tolist() == [1, 0, 1, 0, 0, 1]
    assert labels.clusters.tolist() == [0, 1, 2, 0, 1, 2]


def test_clusters_come_from_the_gold_rows():
    said = answers("abc", medical=[1, 0, 1])
    labels = join_predictions([GOLD], [said], clusters=["q", "q", "r"]).labels
    assert labels.clusters.tolist() == [0, 0, 1]
