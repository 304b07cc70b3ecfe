import json

import pytest
from tests.tracking.samples import record

from dspy_mama.core.errors import DataError, DeclarationError
from dspy_mama.tracking.records import final_outcomes, in_data_order, is_finished, read_records, repair_tail, to_line


def test_a_line_holds_japanese_as_it_is_and_no_line_end_but_its_own():
    line = to_line(record(reason="肩\u2028凝り\u0085\nend"))

    assert "腰が痛い".encode() in line
    assert len(line.decode().splitlines()) == 1
    assert json.loads(line)["reason"] == "肩\u2028凝り\u0085\nend"


def test_numbers_that_are_not_finite_become_unknown_and_lone_surrogates_do_not_stop_a_record():
    line = to_line(record(probability=float("nan"), limit=float("inf"), text="\ud800x"))

    assert json.loads(line) | {"probability": None, "limit": None, "text": "?x"} == json.loads(line)


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_line_torn_by_a_kill_is_dropped_and_counted(tmp_path, cut):
    path = tmp_path / "records.jsonl"
    path.write_bytes(to_line(record("a")) + to_line(record("b"))[:-1][:-cut])

    found = read_records(path)

    assert [r["key"] for r in found.records] == ["a"]
    assert found.torn == 1


@pytest.mark.parametrize("tail", [b'{"key": "b', b"\x00" * 40, b'{"key": "b"\xff\n', b'{"key": "\xe8\x85'])
def test_repair_cuts_the_torn_line_so_that_the_next_record_has_its_own(tmp_path, tail):
    path = tmp_path / "records.jsonl"
    path.write_bytes(to_line(record("a")) + tail)

    assert repair_tail(path) == 1
    with path.open("ab") as stream:
        stream.write(to_line(record("c")))

    assert [r["key"] for r in read_records(path).records] == ["a", "c"]
    assert read_records(path).torn == 0


def test_repair_cuts_a_torn_first_line_and_one_longer_than_a_block(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"key": "' + b"x" * 200_000)
    assert repair_tail(path) == 1
    assert path.read_bytes() == b""

    path.write_bytes(to_line(record("a")) + b'{"key": "' + b"x" * 200_000)
    assert repair_tail(path) == 1
    assert path.read_bytes() == to_line(record("a"))


def test_a_whole_record_without_its_line_end_is_kept(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(to_line(record("a")) + to_line(record("b"))[:-1])

    assert repair_tail(path) == 0

    assert path.read_bytes() == to_line(record("a")) + to_line(record("b"))


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n  \n"])
def test_a_file_without_records_is_no_fault(tmp_path, content):
    path = tmp_path / "records.jsonl"
    path.write_bytes(content)

    assert repair_tail(path) == 0
    assert read_records(path).records == ()


def test_blank_lines_after_a_torn_one_do_not_hide_it(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(to_line(record("a")) + b'{"key"\n\n')

    assert repair_tail(path) == 1
    assert path.read_bytes() == to_line(record("a"))


@pytest.mark.parametrize("line", [b'{"key": "b\n', b"[1]\n", b'{"id": "no key"}\n', b"\xff\xfe\n"])
def test_a_torn_line_in_the_middle_is_an_error_that_names_file_row_and_remedy(tmp_path, line):
    path = tmp_path / "records.jsonl"
    path.write_bytes(to_line(record("a")) + line + to_line(record("c")))

    with pytest.raises(DataError, match=r"records\.jsonl(?s:.*)row 2.*remove the line"):
        read_records(path)


def test_of_several_records_of_a_key_the_last_whole_one_counts(tmp_path):
    path = tmp_path / "records.jsonl"
    lines = [to_line(record("a", "infra")), to_line(record("b")), to_line(record("a")), to_line(record("b"))[:50]]
    path.write_bytes(b"".join(lines))

    found = read_records(path)

    assert {r["key"]: final_outcomes(r)["medical"] for r in found.records} == {"a": "scored", "b": "scored"}
    assert (found.superseded, found.torn) == (1, 1)


def test_only_a_record_whose_every_final_verdict_failed_on_infrastructure_is_unfinished():
    mixed = record("m", "infra")
    mixed["phases"]["consensus"] = {**mixed["phases"]["consensus"], "legal": {"outcome": "parse"}}

    assert not is_finished(record("a", "infra"))
    assert is_finished(record("a", "refused"))
    assert is_finished(mixed)
    assert not is_finished(mixed | {"retry": ["helpfulness"]})


def test_a_record_of_another_shape_is_named():
    with pytest.raises(DeclarationError, match="'x7' has no verdicts"):
        final_outcomes({"key": "k", "id": "x7", "phases": {}, "final_phase": "consensus"})


def test_records_are_listed_in_the_order_of_the_data():
    rows = [
        {"key": k, "repeat": r, "position": p} for k, r, p in [("a", 1, 0), ("b", 0, 2), ("c", 0, 0), ("d", 0, None)]
    ]
    assert [row["key"] for row in in_data_order(rows)] == ["c", "b", "d", "a"]
