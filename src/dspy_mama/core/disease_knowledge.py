"""The disease-knowledge task: the sides of a disease that a model is asked about.

The paper has such a task but does not print its dimensions; these are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

KNOWLEDGE: Final = "knowledge"
"""Name of the task where it stands beside the stages of a case."""

Dimension = Literal["definition", "aetiology", "presentation", "diagnosis", "management", "prognosis"]

DIMENSIONS: Final[Mapping[Dimension, str]] = {
    "definition": "what the disease is, and which group it belongs to",
    "aetiology": "its cause, inheritance and mechanism",
    "presentation": "its signs and symptoms, and when they begin",
    "diagnosis": "the findings and tests that prove it, and what it is told apart from",
    "management": "how it is treated and followed up",
    "prognosis": "its course, complications and life expectancy",
}
"""What is asked of a disease."""
