from __future__ import annotations

import datetime
import json

import pytest

from dspy_mama.core.errors import DataError
from dspy_mama.datasets.tables import read_tables

HEADER = ["id", "question", "answer"]


def read(path, **options):
    (table,) = read_tables(path, **options)
    return table


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_delimiter_and_line_ends_are_found(tmp_path, make, delimiter, end):
    rows = [HEADER, ["p1", "a, b; c | d\te", 'she said "no"'], ["p2", "x", "y"]]
    table = read(make.csv(tmp_path / "f.csv", rows, delimiter=delimiter, end=end))
    assert [list(cells.values()) for _, cells in table] == rows[1:]
    assert table.rows == (2, 3)


def test_table_is_a_hugging_face_dataset_of_text(tmp_path, make):
    table = read(make.csv(tmp_path / "f.csv", [HEADER, ["007", "NA", "1.0"]]))
    assert table.data.to_list() == [{"id": "007", "question": "NA", "answer": "1.0"}]
    assert type(table.data).__module__.startswith("datasets.")


def test_rows_count_records_as_a_spreadsheet_does(tmp_path, make):
    rows = [[], HEADER, ["p1", "two\nlines", "a"], ["", "", ""], ["p2", "b\r\nc", "d"], ["", " ", ""], []]
    table = read(make.csv(tmp_path / "f.csv", rows))
    assert table.rows == (3, 5)
    assert table.data[1]["question"] == "b\nc"
    assert table.facts["line_breaks"] is True
    assert "3 blank row(s) left out" in table.notices


def test_excel_separator_line_is_no_row(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("sep=;\r\nid;question;answer\r\np1;a, b;c\r\n", encoding="utf-8-sig", newline="")
    table = read(path)
    assert (table.rows, table.facts["delimiter"]) == ((2,), ";")


@pytest.mark.parametrize("title", [["Pairs, exported today"], ["Pairs", "", ""]])
def test_title_above_the_header_is_left_out(tmp_path, make, title):
    table = read(make.csv(tmp_path / "f.csv", [title, [], HEADER, ["p1", "a", "b"]], delimiter=";"))
    assert (table.columns, table.rows) == (HEADER, (4,))
    assert "row 1 is a title above the header" in table.notices


def test_unnamed_and_repeated_columns_are_told(tmp_path, make):
    rows = [[*HEADER, "", "answer"], ["p1", "a", "b", "stray", "other"], ["p2", "a", "b", "", ""]]
    table = read(make.csv(tmp_path / "f.csv", rows))
    assert table.columns == HEADER
    assert table.repeated == {"answer"}
    assert any("unnamed column 4" in notice and "row(s) 2" in notice for notice in table.notices)


def test_unquoted_delimiter_is_refused_by_row(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("id,question,answer\np1,a,b\np2,a,rest, and drink\n")
    with pytest.raises(DataError, match="row 3: 4 cells under a header of 3"):
        read(path)


@pytest.mark.parametrize(
    ("text", "row", "reason"),
    [
        ('id,question,answer\np1,a,b\np2,"a,b\np3,c,d\n', 3, "never closed"),
        ('id,question,answer\np1,"a" b,c\n', 2, "broken quoting"),
        ("id,question,answer\np1,a," + "x" * 140_000 + "\n", 2, "131,072"),
    ],
)
def test_broken_quoting_is_refused_by_row(tmp_path, text, row, reason):
    path = tmp_path / "f.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=reason) as caught:
        read(path)
    assert caught.value.faults[0].row == row


def test_tsv_without_quoting_keeps_its_quote_marks(tmp_path):
    path = tmp_path / "f.tsv"
    path.write_text('id\tquestion\tanswer\np1\t"Rest" he said\tb\n')
    assert read(path).data[0]["question"] == '"Rest" he said'


def test_separators_of_other_kinds_do_not_end_a_line(tmp_path):
    path = tmp_path / "f.tsv"
    path.write_text('id\tquestion\tanswer\r\np1\t"Rest" he\u2028said\tb\x85c\r\n', encoding="utf-8", newline="")
    table = read(path)
    assert table.data.to_list() == [{"id": "p1", "question": '"Rest" he\u2028said', "answer": "b\x85c"}]


def test_nul_and_lone_surrogates_are_marked_not_lost(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_text('{"id": "a", "question": "x\\u0000y"}\n\n{"id": "b", "question": "\\ud83d"}\n')
    table = read(path)
    assert table.rows == (1, 3)
    assert "NUL" in table.marks[1, "question"]
    assert "surrogate" in table.marks[3, "question"]


def test_workbook_values_are_read_as_a_person_sees_them(tmp_path, make):
    rows = [
        [*HEADER, "medical", "when"],
        [1.0, "a", "b", True, datetime.datetime(2024, 1, 2)],
        [2, "=1+1", "c", 0, None],
    ]
    table = read(make.xlsx(tmp_path / "f.xlsx", s=rows))
    assert table.data[0] == {
        "id": "1",
        "question": "a",
        "answer": "b",
        "medical": "TRUE",
        "when": "2024-01-02 00:00:00",
    }
    assert table.data[1]["medical"] == "0"
    assert "formula without a stored value" in table.marks[3, "question"]


def test_workbook_gives_a_table_per_visible_sheet(tmp_path, make):
    path = make.xlsx(tmp_path / "f.xlsx", one=[HEADER, ["a", "b", "c"]], empty=[], two=[HEADER, ["d", "e", "f"]])
    assert [table.name.partition("#")[2] for table in read_tables(path)] == ["one", "two"]


def test_stray_cell_beside_a_sheets_table_is_left_out_with_a_notice(tmp_path, make):
    path = make.xlsx(tmp_path / "f.xlsx", s=[HEADER, ["a", "b", "c"], ["d", "e", "f", None, "todo"]])
    table = read(path)
    assert table.columns == HEADER
    assert any("unnamed column 5" in notice and "row(s) 3" in notice for notice in table.notices)


def test_kind_is_told_by_the_bytes_before_the_name(tmp_path, make):
    path = make.xlsx(tmp_path / "f.xlsx", s=[HEADER, ["a", "b", "c"]])
    renamed = path.rename(tmp_path / "f.csv")
    assert read(renamed).facts["format"] == "xlsx"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("f.csv", b"", "empty"),
        ("f.csv", b"\xef\xbb\xbf\r\n", "empty"),
        ("f.csv", b",,\r\n,,\r\n", "no cells"),
        ("f.csv", b"id,question,answer\r\n", "no rows"),
        ("f.xls", b"\xd0\xcf\x11\xe0\xa1\xb1", "save it as .xlsx"),
        ("f.xlsx", b"PK\x03\x04broken", "not a readable Excel workbook"),
        ("f.xlsx", b"id,question", "not a .xlsx file"),
        ("f.parquet", b"PAR1broken", "not a readable parquet"),
        ("f.csv", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        ("f.csv", b"<!doctype html><html>", "web page"),
        ("f.csv.gz", b"\x1f\x8b\x08", "unpack"),
        ("f.pdf", b"%PDF", "'.pdf' is not one that is read"),
        ("f.jsonl", b'{"id": 1}\n{"id": \n[1]\n{"a": 1, "a": 2}\n', "3 fault"),
        ("f.json", b'{"id": 1}', "list of objects"),
        ("f.json", b"[" * 100_000, "not JSON"),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path, name, data, reason):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError, match=reason) as caught:
        read_tables(path)
    assert name in str(caught.value)


def test_json_and_parquet_hold_the_same_as_csv(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    records = [
        {"id": 1, "question": "a", "medical": True, "fluency": [1, 2]},
        {"id": 2, "question": "b", "medical": None, "fluency": None},
    ]
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "f.parquet")
    (tmp_path / "f.jsonl").write_text("".join(json.dumps(r) + "\r\n" for r in records), newline="")
    (tmp_path / "f.json").write_text(json.dumps(records))
    expected = [
        {"id": "1", "question": "a", "medical": "TRUE", "fluency": "[1, 2]"},
        {"id": "2", "question": "b", "medical": "", "fluency": ""},
    ]
    for name in ("f.parquet", "f.jsonl", "f.json"):
        assert read(tmp_path / name).data.to_list() == expected


def test_unreadable_path_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_tables(tmp_path / "missing.csv")
