import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_mama.core.disease_names import normalise_disease


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Jacobsen Syndrome ", "jacobsen syndrome"),
        ("Behçet's disease", "Behcet disease"),
        ("Behçet’s Disease", "behcet"),
        (
            "Mendelian susceptibility to mycobacterial disease (MSMD)",
            "mendelian susceptibility to mycobacterial disease",
        ),
        ("Beckwith–Wiedemann syndrome", "Beckwith-Wiedemann Syndrome"),
        ("Probable Marfan disease", "the Marfan syndrome"),
        ("Haemophilia A", "hemophilia a"),
        ("Mucopolysaccharidosis type II", "mucopolysaccharidosis, type 2"),
        ("Aplastic anaemia", "aplastic anemia"),
        ("Ｆａｂｒｙ disease", "Fabry disease"),
    ],
)
def test_spellings_of_one_name_meet(one, other):
    assert normalise_disease(one) == normalise_disease(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mucopolysaccharidosis type I", "Mucopolysaccharidosis type II"),
        ("Hemophilia A", "Hemophilia B"),
        ("Diabetes mellitus", "Diabetes insipidus"),
        ("Trisomy 18", "Trisomy 13"),
        ("hyperthyroidism", "hypothyroidism"),
        ("BWS", "Beckwith-Wiedemann syndrome"),
        ("Hemophilia A", "Hemophilia"),
        ("Cushing disease", "Cushing's syndrome"),
        ("Factor V deficiency", "Factor X deficiency"),
    ],
)
def test_different_names_stay_different(one, other):
    assert normalise_disease(one) != normalise_disease(other)


def test_a_name_is_never_emptied_by_what_is_dropped():
    assert normalise_disease("Disease") == "disease"
    assert normalise_disease("(MSMD)") == "msmd"
    assert normalise_disease(" - ") == ""


@given(st.text(max_size=60))
def test_a_normal_form_is_words_and_single_blanks_and_keeps_at_least_one_word(name):
    form = normalise_disease(name)
    assert form == " ".join(form.split())
    assert all(word.isalnum() for word in form.split())
    if any(sign.isascii() and sign.isalnum() for sign in name):
        assert form
