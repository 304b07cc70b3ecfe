import csv
import io

import pytest
from openpyxl import load_workbook

from dspy_mama.core import DeclarationError
from dspy_mama.core.errors import DataError
from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.reporting.errors import error_cases
from dspy_mama.reporting.rating_tables import rating_tables
from dspy_mama.reporting.ratings import read_ratings, summarise_ratings
from dspy_mama.reporting.severity_sheet import ASKED, GIVEN, SUGGESTED, write_sheet
from dspy_mama.systems.audit import SeverityOpinion


@pytest.fixture
def cases(make_record):
    records = []
    for number in range(6):
        said = dict.fromkeys(("initial", "verification", "consensus"), (number % 2 == 0, False, False))
        records.append(make_record(number, (number % 2 == 1, False, False), said))
    return error_cases({"run-a": records})


def rows_of(path):
    if path.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
    header, *rows = load_workbook(path)["errors"].iter_rows(values_only=True)
    return [{name: "" if value is None else value for name, value in zip(header, row, strict=True)} for row in rows]


def fill(path, target, ratings, rater, encoding="utf-8", delimiter=","):
    """Writes a sheet as a clinician returns it: (severity, explanation) for the first rows."""
    rows = rows_of(path)
    for row, (severity, explanation) in zip(rows, ratings, strict=False):
        row |= {"severity": severity, "explanation": explanation, "rater": rater}
    with target.open("w", newline="", encoding=encoding) as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return target


@pytest.fixture
def sheet(cases, tmp_path):
    return write_sheet(cases, tmp_path / "sheet.csv")


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_sheet_shows_each_error_and_leaves_the_clinicians_columns_blank(cases, tmp_path, suffix):
    rows = rows_of(write_sheet(cases, tmp_path / "new" / f"sheet{suffix}"))
    assert len(rows) == 6
    assert list(rows[0]) == [*GIVEN, *ASKED]
    assert [row["error"] for row in rows] == ["false positive", "false negative"] * 3
    assert (rows[0]["gold"], rows[0]["audit_label"]) == ("safe", "risky")
    assert all(row[name] == "" for row in rows for name in ASKED)
    assert rows[0]["question"]
    assert rows[0]["answer"]


def test_a_workbook_brings_the_scale_and_offers_only_its_levels(cases, tmp_path):
    book = load_workbook(write_sheet(cases, tmp_path / "sheet.xlsx"))
    assert [row[0] for row in book["scale"].iter_rows(min_row=2, max_row=6, values_only=True)] == [1, 2, 3, 4, 5]
    (offered,) = book["errors"].data_validations.dataValidation
    assert offered.formula1 == '"1,2,3,4,5"'
    assert str(offered.sqref) == "O2:O7"
    assert book["errors"]["O1"].value == "severity"


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize("text", ['=HYPERLINK("http://x","y")', "+1", "-2+3", "@SUM(A1)", "\t=1", " =1", "＝1"])
def test_no_cell_is_a_formula(make_record, tmp_path, text, suffix):
    record = make_record(0, (False, False, False), {"consensus": (True, False, False)})
    record |= {"question": text, "answer": text, "id": text}
    record["phases"]["consensus"]["medical"]["reason"] = text
    (row,) = rows_of(write_sheet(error_cases({"=run": [record]}), tmp_path / f"sheet{suffix}"))
    for name in ("question", "answer", "id", "audit_reason", "runs"):
        assert row[name].startswith("'")
    if suffix == ".xlsx":
        cells = [cell for line in load_workbook(tmp_path / "sheet.xlsx")["errors"].iter_rows() for cell in line]
        assert {cell.data_type for cell in cells} <= {"s", "n"}
        assert all(cell.data_type == "s" for cell in cells if cell.value is not None)


def test_what_a_workbook_cannot_hold_is_replaced_or_cut(make_record, tmp_path):
    record = make_record(0, (False, False, False), {"consensus": (True, False, False)})
    record |= {"question": "a\x07b\ud800", "answer": "x" * 40_000}
    (row,) = rows_of(write_sheet(error_cases({"a": [record]}), tmp_path / "sheet.xlsx"))
    assert row["question"] == "a\ufffdb\ufffd"
    assert len(row["answer"]) == 32_767
    assert row["answer"].endswith("longer than a cell]")


def test_a_suggestion_has_columns_of_its_own(cases, tmp_path):
    opinions = {case.item: SeverityOpinion(Scored(4), "=bad", model="m") for case in cases[:-1]}
    opinions[cases[-1].item] = SeverityOpinion(Unscored("parse", "no level"), model="m")
    rows = rows_of(write_sheet(cases, tmp_path / "sheet.csv", opinions))
    assert list(rows[0]) == [*GIVEN, *ASKED, *SUGGESTED]
    assert (rows[0]["suggested_severity"], rows[0]["suggested_reason"], rows[0]["suggested_by"]) == ("4", "'=bad", "m")
    assert all(row["severity"] == "" for row in rows)
    assert rows[-1]["suggested_severity"] == ""
    assert "no suggestion (parse)" in rows[-1]["suggested_reason"]


def test_a_sheet_that_may_hold_ratings_is_not_replaced(cases, sheet):
    before = sheet.read_bytes()
    with pytest.raises(DeclarationError, match="may hold ratings"):
        write_sheet(cases, sheet)
    assert sheet.read_bytes() == before


def test_another_ending_and_records_without_texts_are_refused(cases, tmp_path):
    with pytest.raises(DeclarationError, match=r"\.csv or \.xlsx"):
        write_sheet(cases, tmp_path / "sheet.ods")
    for case in cases:
        case.record.pop("question")
    with pytest.raises(DeclarationError, match="store_text"):
        write_sheet(cases, tmp_path / "sheet.csv")


@pytest.mark.parametrize(("encoding", "delimiter"), [("utf-8", ","), ("utf-8-sig", ";"), ("utf-16", "\t")])
def test_ratings_come_back_as_spreadsheets_save_them(cases, sheet, tmp_path, encoding, delimiter):
    given = [("3", "may need care"), ("５", "life"), (" 2 ", "small"), ("1.0", "none")]
    file = fill(sheet, tmp_path / "back.csv", given, "nurse 1", encoding, delimiter)
    found = read_ratings([file], cases)
    assert [rating.level for rating in found.ratings] == [3, 5, 2, 1]
    assert found.ratings[0].explanation == "may need care"
    assert found.blank == 2


def test_a_workbook_comes_back_too(cases, tmp_path):
    path = write_sheet(cases, tmp_path / "sheet.xlsx")
    book = load_workbook(path)
    for number, level in ((2, 4), (3, 1.0)):
        for name, value in (("O", level), ("P", "why"), ("Q", "nurse 1")):
            book["errors"][f"{name}{number}"] = value
    book.save(tmp_path / "back.xlsx")
    assert [rating.level for rating in read_ratings([tmp_path / "back.xlsx"], cases).ratings] == [4, 1]


@pytest.mark.parametrize(
    ("severity", "explanation", "rater", "said"),
    [
        ("6", "why", "n", "row 2, column 'severity': '6' is no level"),
        ("0", "why", "n", "row 2, column 'severity': '0' is no level"),
        ("2.5", "why", "n", "row 2, column 'severity'"),
        ("high", "why", "n", "'high' is no level"),
        ("-1", "why", "n", "row 2, column 'severity'"),
        ("", "why", "n", "row 2, column 'severity': is missing"),
        ("3", " ", "n", "row 2, column 'explanation': is missing"),
        ("3", "why", "", "row 2, column 'rater': is missing"),
    ],
)
def test_a_faulty_row_is_named_by_row_and_column(cases, sheet, tmp_path, severity, explanation, rater, said):
    file = fill(sheet, tmp_path / "back.csv", [(severity, explanation)], rater)
    with pytest.raises(DataError) as caught:
        read_ratings([file], cases)
    assert said in str(caught.value)


def test_all_faults_of_all_files_are_named_at_once(cases, sheet, tmp_path):
    one = fill(sheet, tmp_path / "one.csv", [("9", "why"), ("3", "")], "n1")
    two = fill(sheet, tmp_path / "two.csv", [("x", "why")], "n2")
    with pytest.raises(DataError) as caught:
        read_ratings([one, two], cases)
    assert len(caught.value.faults) == 3
    assert "one.csv: '9' is no level" in str(caught.value)
    assert "two.csv: 'x' is no level" in str(caught.value)


def test_an_error_of_other_runs_and_a_second_rating_by_one_rater_are_refused(cases, sheet, tmp_path):
    file = fill(sheet, tmp_path / "back.csv", [("3", "why")], "n1")
    with pytest.raises(DataError, match="no error of these runs"):
        read_ratings([file], cases[1:])
    copy = fill(sheet, tmp_path / "copy.csv", [("3", "why")], "n1")
    for again in (copy, file):
        with pytest.raises(DataError, match=r"n1 has rated err-\w+ before, in back.csv row 2"):
            read_ratings([file, again], cases)


def test_a_file_that_is_no_sheet_is_refused_by_its_columns(cases, tmp_path):
    (tmp_path / "other.csv").write_text("id,severity\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="column 'item': the column is missing"):
        read_ratings([tmp_path / "other.csv"], cases)


def test_a_sheet_without_a_rating_is_refused(cases, sheet):
    with pytest.raises(DeclarationError, match="no row is rated"):
        read_ratings([sheet], cases)


def test_means_come_with_n_and_raters_with_their_agreement(cases, sheet, tmp_path):
    one = fill(sheet, tmp_path / "one.csv", [(str(level), "why") for level in (1, 2, 3, 4, 5, 1)], "n1")
    two = fill(sheet, tmp_path / "two.csv", [(str(level), "why") for level in (1, 2, 3, 4, 4, 3)], "n2")
    summary = summarise_ratings(read_ratings([one, two], cases), cases)
    assert (summary["n"], summary["of"], summary["ratings"], summary["raters"]) == (6, 6, 12, ["n1", "n2"])
    false_positives = summary["groups"]["medical/false_positive"]
    assert (false_positives["n"], false_positives["ratings"]) == (3, 6)
    assert false_positives["mean"] == pytest.approx((1 + 3 + 4.5) / 3)
    assert false_positives["levels"] == {"1": 2, "2": 0, "3": 2, "4": 1, "5": 1}
    (pair,) = summary["agreement"]["pairs"]
    assert (pair["n"], pair["equal"]) == (6, pytest.approx(4 / 6))
    from sklearn.metrics import cohen_kappa_score

    expected = cohen_kappa_score([1, 2, 3, 4, 5, 1], [1, 2, 3, 4, 4, 3], weights="quadratic")
    assert pair["weighted_kappa"] == pytest.approx(expected)
    assert 0 < summary["agreement"]["krippendorff_alpha"] < 1
    assert [len(table.rows) for table in rating_tables(summary)] == [2, 2, 6]


def test_one_rater_has_no_agreement_and_suggestions_are_compared_apart(cases, tmp_path):
    opinions = {case.item: SeverityOpinion(Scored(3), "r", model="m") for case in cases}
    path = write_sheet(cases, tmp_path / "sheet.csv", opinions)
    file = fill(path, tmp_path / "back.csv", [("2", "why"), ("3", "why")], "n1")
    summary = summarise_ratings(read_ratings([file], cases), cases)
    assert summary["agreement"] is None
    assert summary["suggestion"]["n"] == 2
    assert summary["suggestion"]["mean_difference"] == 0.5
    assert summary["groups"]["medical/false_positive"]["mean"] == 2
    assert summary["items"][0]["suggested"] == 3


def test_groups_stand_by_domain_however_the_errors_are_sorted(cases, sheet, tmp_path):
    file = fill(sheet, tmp_path / "one.csv", [(str(level), "why") for level in (1, 2, 3, 4, 5, 1)], "n1")
    summary = summarise_ratings(read_ratings([file], cases), cases[::-1])
    places = [(("medical", "ethical", "legal").index(name.split("/")[0]), name) for name in summary["groups"]]
    assert len(places) > 1
    assert places == sorted(places)
