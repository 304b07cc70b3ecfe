import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.patient_case import PatientCase, as_case

CASE = PatientCase(
    "c1",
    {"Basic Information": "A girl of six.", "Physical Examination": " "},
    {"Further Diagnostic Tests": "MRI shows JACOBSEN\n syndrome."},
    "Jacobsen syndrome",
)


def test_a_stage_shows_what_is_known_at_that_visit():
    assert CASE.text("primary") == "Basic Information: A girl of six."
    assert CASE.text("follow_up").startswith("Basic Information: A girl of six.\n\nFurther Diagnostic Tests: MRI")
    assert CASE.missing("primary") == ("Physical Examination",)


def test_a_diagnosis_in_the_text_is_a_leak_of_that_stage_alone():
    assert (CASE.leaks("primary"), CASE.leaks("follow_up")) == (False, True)
    assert not PatientCase("c2", {"": "no diagnosis is known"}).leaks("primary")
    assert not PatientCase("c3", {"": "text"}, diagnosis="").leaks("primary")


def test_a_text_and_a_mapping_become_cases():
    assert as_case("Fever for a week.").text("primary") == "Fever for a week."
    case = as_case({"history": "Fever", "age": 7, "nothing": None, "further_diagnostic_tests": "Culture positive"})
    assert case.text("primary") == "history: Fever\n\nage: 7"
    assert case.text("follow_up").endswith("further_diagnostic_tests: Culture positive")
    assert as_case(CASE) is CASE


@pytest.mark.parametrize("wrong", [None, 3, ["text"], "", " \n", {}, {"a": ""}, {"a": {"b": "c"}}, {"a": True}])
def test_what_is_no_case_is_refused_before_any_call(wrong):
    with pytest.raises(DeclarationError, match="case"):
        as_case(wrong)
