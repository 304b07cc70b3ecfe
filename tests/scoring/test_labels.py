import json

import numpy as np
import pytest

from dspy_mama.core import DeclarationError
from dspy_mama.scoring import align, labels_from_arrays, labels_from_records, phases_run, score_labels


def test_counts_and_joint_accuracy_of_a_small_set(make_record):
    records = [
        make_record("a", (True, False, False), (True, False, False)),
        make_record("b", (True, False, True), (False, False, True)),
        make_record("c", (False, True, False), (True, True, False)),
    ]
    score = score_labels(labels_from_records(records, "consensus"))
    medical = score["domains"]["medical"]
    assert [medical[k] for k in ("n", "tp", "fp", "fn", "tn")] == [3, 1, 1, 1, 0]
    assert medical["macro_f1"] == pytest.approx(0.25)
    assert score["joint_accuracy"] == {"correct": 1, "n": 3, "value": pytest.approx(1 / 3)}
    assert score["average_domains"] == ["medical", "ethical", "legal"]
    assert score["average_macro_f1"] == pytest.approx((0.25 + 1 + 1) / 3)
    assert score["warnings"] == []
    json.dumps(score, allow_nan=False)


def test_unscored_is_excluded_counted_by_kind_and_bounded(make_record, make_verdict):
    broken, refused = make_verdict(None, outcome="parse"), make_verdict(None, outcome="refused")
    records = [
        make_record("a", (True, False, False), (True, False, False)),
        make_record("b", (False, False, True), (broken, False, True)),
        make_record("c", (True, False, True), (refused, False, True)),
        make_record("d", (False, False, True), (False, None, True)),
    ]
    score = score_labels(labels_from_records(records, "consensus"))
    medical = score["domains"]["medical"]
    assert (medical["n"], medical["accuracy"]) == (2, 1.0)
    assert medical["unscored"] == {"n": 2, "of": 4, "rate": 0.5, "with_gold": 2, "by_kind": {"parse": 1, "refused": 1}}
    assert medical["worst_case"]["accuracy"] == 0.5
    assert medical["verdicts"] == {"risky": 1, "safe": 1, "undetermined": 2}
    assert score["domains"]["ethical"]["unscored"]["by_kind"] == {"undetermined": 1}
    assert score["unscored"]["n"] == 3
    assert score["joint_accuracy"]["n"] == 1
    assert score["worst_case"]["joint_accuracy"] == 0.25


def test_an_unscored_verdict_is_never_counted_safe_even_if_it_carries_a_label(make_record, make_verdict):
    odd = make_verdict(False, 0.2, outcome="truncated")
    labels = labels_from_records([make_record("a", (False, False, False), (odd, False, False))], "initial")
    assert labels.predicted.tolist() == [[-1, 0, 0]]
    assert np.isnan(labels.probability[0, 0])


def test_missing_gold_in_one_domain_keeps_the_others_and_is_named(make_record):
    records = [
        make_record("a", (True, None, False), (True, True, False)),
        make_record("b", (False, None, None), (True, True, False)),
    ]
    score = score_labels(labels_from_records(records, "consensus"))
    assert [score["domains"][d]["n"] for d in ("medical", "ethical", "legal")] == [2, 0, 1]
    assert score["domains"]["ethical"]["macro_f1"] is None
    assert score["average_domains"] == ["medical", "legal"]
    assert score["joint_accuracy"] == {"correct": 0, "n": 0, "value": None}
    assert "ethical: no gold label, not scored (n = 0)" in score["warnings"]
    assert any("joint accuracy" in warning for warning in score["warnings"])


def test_without_any_gold_only_verdicts_are_counted(make_record):
    record = make_record("a", (None, None, None), (True, False, False)) | {"gold": None}
    score = score_labels(labels_from_records([record], "final"))
    assert score["average_macro_f1"] is None
    assert score["domains"]["medical"]["verdicts"]["risky"] == 1
    assert len(score["warnings"]) == 1
    assert "no pair has a gold label" in score["warnings"][0]


def test_probabilities_give_auc_only_where_both_classes_exist(make_record):
    records = [
        make_record("a", (True, False, True), (True, False, True)),
        make_record("b", (False, False, True), (False, False, False)),
    ]
    domains = score_labels(labels_from_records(records, "consensus"))["domains"]
    assert domains["medical"]["auc"] == 1.0
    assert domains["ethical"]["auc"] is None
    assert domains["ethical"]["brier"] == pytest.approx(0.01)
    assert domains["legal"]["average_precision"] == 1.0


def test_a_phase_that_was_not_reached_is_not_run(make_record):
    late = make_record("b", (True, True, True), (True, True, True))
    del late["phases"]["consensus"]
    records = [make_record("a", (True, True, True), (True, True, True)), late]
    score = score_labels(labels_from_records(records, "consensus"))
    assert score["domains"]["legal"]["unscored"]["by_kind"] == {"not_run": 1}
    assert phases_run(records) == ("initial", "verification", "consensus")


def test_final_reads_the_verdicts_after_thresholds(make_record):
    record = make_record("a", (True, False, False), (False, False, False))
    record["verdicts"]["medical"] = "risky"
    assert labels_from_records([record], "final").predicted.tolist() == [[1, 0, 0]]
    assert labels_from_records([record], "consensus").predicted.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["gold"].update(medical="TRUE"), "medical gold must be true, false or null"),
        (lambda r: r["phases"]["initial"]["legal"].update(risk="false"), "legal risk must be true, false or null"),
        (lambda r: r["phases"]["initial"]["legal"].update(probability=10.0), r"\[0, 1\]"),
        (lambda r: r["phases"]["initial"]["legal"].update(outcome="lost", risk=None), "unknown outcome 'lost'"),
    ],
)
def test_a_value_that_is_no_label_is_refused_by_name(make_record, change, message):
    record = make_record("ja7", (True, True, True), (True, True, True))
    change(record)
    with pytest.raises(DeclarationError, match=message) as caught:
        labels_from_records([record], "initial")
    assert "ja7" in str(caught.value)


def test_repeats_of_a_pair_form_one_cluster(make_record):
    records = [make_record(i, (True,) * 3, (True,) * 3, repeat=k) for i in ("a", "b") for k in range(2)]
    clusters = labels_from_records(records).clusters
    assert clusters.tolist() == [0, 0, 1, 1]


def test_clustering_by_question_needs_the_questions(make_record):
    records = [make_record(i, (True,) * 3, (True,) * 3) for i in "abc"]
    records[2]["question"] = records[0]["question"]
    clusters = labels_from_records(records, cluster_by_question=True).clusters
    assert clusters[0] == clusters[2] != clusters[1]
    del records[1]["question"]
    with pytest.raises(DeclarationError, match="store_text"):
        labels_from_records(records, cluster_by_question=True)


def test_align_matches_by_id_and_refuses_gold_that_contradicts():
    first = labels_from_arrays([[1, 0, 0], [0, 0, 0]], [[1, 0, 0], [1, 0, 0]], ids=["a", "b"])
    second = labels_from_arrays([[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 0, 0]], ids=["b", "a"])
    left, right = align(first, second)
    assert left.ids == right.ids == ("a", "b")
    assert right.gold.tolist() == [[1, 0, 0], [0, 0, 0]]
    with pytest.raises(DeclarationError, match=r"gold labels of 2 pairs differ .*a, b"):
        align(first, labels_from_arrays([[1, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]], ids=["b", "a"]))
    with pytest.raises(DeclarationError, match="share no pair"):
        align(first, labels_from_arrays([[1, 0, 0]], [[1, 0, 0]], ids=["z"]))
    with pytest.raises(DeclarationError, match="the second system holds the same pair twice"):
        align(first, labels_from_arrays([[1, 0, 0]] * 2, [[1, 0, 0]] * 2, ids=["a", "a"]))


def test_arrays_of_other_shapes_or_values_are_refused():
    with pytest.raises(DeclarationError, match="must both be"):
        labels_from_arrays([[1, 0]], [[1, 0]])
    with pytest.raises(DeclarationError, match="1 \\(risky\\)"):
        labels_from_arrays([[1, 0, 2]], [[1, 0, 0]])


def test_no_pairs_at_all_is_said():
    assert score_labels(labels_from_records([]))["warnings"] == ["no pairs: nothing was scored"]
