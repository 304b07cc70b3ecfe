"""Specialties that may sit on a panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dspy_mama.core.disease_names import normalise_disease

SPECIALTIES: Final = (
    "Internal Medicine", "Medical Genetics", "Neurology", "Pediatrics", "Immunology and Allergy", "Hematology",
    "Rheumatology", "Endocrinology", "Infectious Diseases", "Nephrology", "Cardiology", "Pulmonology",
    "Gastroenterology", "Hepatology", "Oncology", "Dermatology", "Ophthalmology", "Otorhinolaryngology",
    "Metabolic Medicine", "Neonatology", "Gynecology", "Obstetrics", "Reproductive Medicine", "Urology",
    "Orthopedics", "General Surgery", "Cardiothoracic Surgery", "Vascular Surgery", "Neurosurgery",
    "Maxillofacial Surgery", "Dentistry", "Psychiatry", "Radiology", "Pathology", "Toxicology", "Critical Care",
    "Emergency Medicine", "Geriatrics",
)  # fmt: skip
"""38, as in the authors' code; the names are ours, and the order is that in which missing ones are filled in."""


def specialty_key(name: str) -> str:
    """Returns the form under which spellings of a specialty meet: case, British spelling, and -ologist for -ology."""
    return normalise_disease(name).replace("ologist", "ology")


def resolve_specialties(
    asked: Sequence[str], allowed: Sequence[str], count: int
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Returns who sits on the panel, from what a consultant asked for.

    Args:
        asked: Names as they were given.
        allowed: The allow-list, in the order in which missing ones are filled in.
        count: Doctors on the panel.

    Returns:
        The chosen specialties; the names that were dropped, with the reason; the specialties that were filled in.
    """
    known = {specialty_key(name): name for name in allowed}
    chosen: list[str] = []
    dropped: list[tuple[str, str]] = []
    for name in asked:
        permitted = known.get(specialty_key(name))
        if permitted is None:
            dropped.append((name, "not in the list"))
        elif permitted in chosen:
            dropped.append((name, "named twice"))
        elif len(chosen) == count:
            dropped.append((name, "more than there are doctors"))
        else:
            chosen.append(permitted)
    filled = [name for name in allowed if name not in chosen][: count - len(chosen)]
    return (*chosen, *filled), tuple(dropped), tuple(filled)
