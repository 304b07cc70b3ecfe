import pytest

from dspy_mama.core.errors import DataError
from dspy_mama.datasets.ratings import CaseRating, read_case_ratings, read_synonyms


def test_ratings_are_read_and_blank_ones_left_out(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text(
        "id,unit,score,rater,repeat\na/primary/mac,most_likely,5.0,x,\na/primary/mac,tests,,x,\nb,tests,1,y,2\n"
    )
    assert read_case_ratings(file) == (
        CaseRating("a/primary/mac", "most_likely", 5, "x"),
        CaseRating("b", "tests", 1, "y", 2),
    )


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a,most_likely,1,x", "'1' is no level of most_likely"),
        ("a,tests,0,x", "'0' is no level of tests"),
        ("a,nonsense,5,x", "is none of most_likely, possible, tests"),
        ("a,tests,5,", "'rater'"),
        ("a,tests,5,x\na,tests,4,x", "rated this before, in row 2"),
    ],
)
def test_a_faulty_rating_is_named_by_row_and_column(tmp_path, row, said):
    file = tmp_path / "people.csv"
    file.write_text(f"id,unit,score,rater\n{row}\n")
    with pytest.raises(DataError) as caught:
        read_case_ratings(file)
    assert said in str(caught.value)


def test_a_missing_column_is_named(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("id,unit,score\na,tests,5\n")
    with pytest.raises(DataError, match="rater"):
        read_case_ratings(file)


def test_a_dictionary_is_read_whole(tmp_path):
    file = tmp_path / "names.csv"
    file.write_text("name,synonym\nFabry disease,Anderson-Fabry disease\nFabry disease,\n")
    with pytest.raises(DataError, match="synonym"):
        read_synonyms(file)
    file.write_text("name,synonym\nFabry disease,Anderson-Fabry disease\n")
    assert read_synonyms(file) == [("Fabry disease", "Anderson-Fabry disease")]
