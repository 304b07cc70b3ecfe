"""How methods, stages and what is judged are called in tables."""

from __future__ import annotations

from typing import Final

TITLES: Final = {
    "mac": "MAC panel",
    "direct": "Direct",
    "cot": "Chain of thought",
    "self_consistency": "Self-consistency",
    "self_refine": "Self-refine",
    "primary": "Primary",
    "follow_up": "Follow-up",
    "most_likely": "Most likely",
    "possible": "Possible",
    "tests": "Tests",
    "knowledge": "Knowledge",
    "definition": "Definition",
    "aetiology": "Aetiology",
    "presentation": "Presentation",
    "diagnosis": "Diagnosis",
    "management": "Management",
    "prognosis": "Prognosis",
}


def title_of(name: str) -> str:
    """Returns how a method, stage or unit is called in tables."""
    return TITLES.get(name, name)
