import re

import pytest

from dspy_mama.core.errors import DataError
from dspy_mama.datasets.safety_ratings import SafetyRating, read_safety_ratings


def written(tmp_path, text):
    path = tmp_path / "ratings.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_ratings_are_read_and_blank_rows_wait(tmp_path):
    path = written(tmp_path, "id,version,rater,ama,sra\na,2,r1,3,2\na,,r1,,4\nb,,,9,\nc,1,r1,,\n")
    assert read_safety_ratings(path) == (
        SafetyRating("a", 2, "r1", {"ama": 3, "sra": 2}),
        SafetyRating("a", None, "r1", {"sra": 4}),
        SafetyRating("b", None, "", {"ama": 9}),
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("id,ama\na,10\n", "row 2, column 'ama'.*'10' is no whole number from 0 to 9"),
        ("id,sra\na,0\n", "row 2, column 'sra'.*from 1 to 5"),
        ("id,sra\n,3\n", "row 2, column 'id': is missing"),
        ("id,version,sra\na,x,3\n", "row 2, column 'version'"),
        ("id,rater,sra\na,r1,3\na,r1,3\n", "row 3, column 'id'.*rated this before, in row 2"),
        ("name,sra\na,3\n", "needed are the columns id and ama or sra; it has name, sra"),
        ("id,sra\na,\n", "no row holds a rating yet"),
    ],
)
def test_faults_are_named_by_row_and_column(tmp_path, text, named):
    with pytest.raises(DataError) as caught:
        read_safety_ratings(written(tmp_path, text))
    assert re.search(named, str(caught.value)), caught.value
