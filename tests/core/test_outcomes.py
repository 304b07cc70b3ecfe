import copy
import pickle

import pytest

from dspy_mama.core.ids import content_hash, file_hash, files_hash, object_hash
from dspy_mama.core.outcomes import RAW_LIMIT, UNDETERMINED, Undetermined, UndeterminedError, Unscored
from dspy_mama.settings import SystemSettings


def test_an_undetermined_label_has_no_truth_value():
    with pytest.raises(UndeterminedError, match="needs_review"):
        bool(UNDETERMINED)
    with pytest.raises(UndeterminedError):
        assert not UNDETERMINED


def test_an_undetermined_label_is_neither_true_nor_false():
    assert UNDETERMINED not in (True, False, None, 0, "")


def test_there_is_one_undetermined_label():
    made = (
        Undetermined(),
        copy.deepcopy(UNDETERMINED),
        copy.copy(UNDETERMINED),
        pickle.loads(pickle.dumps(UNDETERMINED)),
    )
    assert all(label is UNDETERMINED for label in made)


def test_raw_text_is_bounded():
    assert len(Unscored("parse", "field", "x" * 10 * RAW_LIMIT).raw) == RAW_LIMIT


def test_hashes_do_not_depend_on_the_order_of_keys():
    assert object_hash({"a": 1, "b": {"c": 2, "d": 3}}) == object_hash({"b": {"d": 3, "c": 2}, "a": 1})
    assert object_hash({"a", "b"}) == object_hash({"b", "a"})


def test_hashes_tell_contents_apart():
    values = [
        {"a": 1},
        {"a": "1"},
        {"a": None},
        {"a": [1]},
        {"a": True},
        SystemSettings(),
        SystemSettings(evidence="topk"),
    ]
    assert len({object_hash(value) for value in values}) == len(values)


def test_a_hash_of_any_text_can_be_had():
    assert content_hash("a") == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert len(content_hash("lone \ud83d", 12)) == 12


def test_files_are_hashed_by_name_and_content(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a")
    two.write_text("b")
    assert file_hash(one) == content_hash("a")
    assert files_hash([one, two]) == files_hash([two, one])
    before = files_hash([one, two])
    two.write_text("c")
    assert files_hash([one, two]) != before
