import pytest

from dspy_mama.scoring.disease_match import match_disease, synonym_table


@pytest.mark.parametrize(
    ("truth", "answer", "kind"),
    [
        ("Fabry disease", "fabry's disease", "exact"),
        ("Haemophilia A", "hemophilia A", "exact"),
        ("Beckwith-Wiedemann syndrome (BWS)", "BWS", "synonym"),
        ("Beckwith-Wiedemann syndrome", "Beckwith-Wiedeman syndrome", "fuzzy"),
        ("Hemophilia A", "Hemophilia B", "none"),
        ("Glycogen storage disease type 1", "Glycogen storage disease type 2", "none"),
        ("Hyperthyroidism", "Hypothyroidism", "none"),
        ("Fabry disease", "Gaucher disease", "none"),
        ("Fabry disease", "", "none"),
    ],
)
def test_names_match_by_spelling_and_never_across_types(truth, answer, kind):
    assert match_disease(truth, [answer]).kind == kind


def test_the_closest_answer_counts_wherever_it_stands():
    found = match_disease("Fabry disease", ["Gaucher disease", "Fabry", "lupus"])
    assert (found.kind, found.answer) == ("exact", "Fabry")
    assert match_disease("Fabry disease", []).kind == "none"


def test_a_dictionary_joins_names_that_share_no_letter_and_follows_chains():
    table = synonym_table([("Sneddon syndrome", "livedo and stroke"), ("livedo and stroke", "Ehrmann disease")])
    assert match_disease("Ehrmann disease", ["sneddon"], table).kind == "synonym"
    assert match_disease("Ehrmann disease", ["sneddon"]).kind == "none"
