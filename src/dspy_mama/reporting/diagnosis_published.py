"""Figures that the paper on MAC prints, to stand beside ours. What its text does not print is absent here.

Source: "Enhancing diagnostic capability with multi-agents conversational large language models", npj Digital Medicine
2025, 302 cases; accuracies in percent of three runs. The text differs from Table 1 in two places, both kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CASES: Final = 302


@dataclass(frozen=True, slots=True)
class PrintedAccuracy:
    """What is printed of one setting at one stage, in percent; None = not printed in the text.

    Attributes:
        stage: `primary` (Table 1) or `follow_up` (Table 2).
        setting: The setting in words.
        method: Which of our methods it stands beside.
        most_likely: Cases whose most likely diagnosis is right.
        possible: Cases whose possible diagnoses hold the right one.
        tests: Cases whose recommended tests help.
        note: Where the text differs from the table.
    """

    stage: str
    setting: str
    method: str
    most_likely: float | None = None
    possible: float | None = None
    tests: float | None = None
    note: str = ""


ACCURACIES: Final = (
    PrintedAccuracy("primary", "MAC, GPT-4, 4 doctors", "mac", 34.11, 48.12, 78.26),
    PrintedAccuracy("primary", "MAC, GPT-4, 2 doctors", "mac", 31.13, note="the text says 31.31"),
    PrintedAccuracy("primary", "MAC, GPT-4, 4 doctors, no supervisor", "mac", 32.67, 45.47),
    PrintedAccuracy("primary", "MAC, GPT-3.5, 4 doctors", "mac", 24.28, 36.64, 77.59, note="the text says 77.37"),
    PrintedAccuracy("primary", "GPT-4 alone", "direct", 19.65, 34.55, 58.17),
    PrintedAccuracy("primary", "GPT-3.5 alone", "direct", 16.23),
    PrintedAccuracy("follow_up", "MAC, GPT-4, 4 doctors", "mac", 53.86, 67.88),
    PrintedAccuracy("follow_up", "GPT-4 alone", "direct", 37.86, 59.71),
    PrintedAccuracy("follow_up", "GPT-3.5 alone", "direct", 29.36),
)

COST: Final = {"primary": 0.12, "follow_up": 0.17}
"""US dollars a case, MAC with GPT-4."""

SWEEPS: Final = (
    ("doctors", "2, 3, 4, 5", "4 is best, 3 comes close"),
    ("supervisor", "with, without", "with is better"),
    ("specialties", "none, assigned", "no numbers in the text; none is the standard"),
    ("base model", "GPT-3.5-turbo, GPT-4o-mini, GPT-4", "GPT-4o-mini is like GPT-3.5-turbo, GPT-4 far better"),
    ("rounds (MAC)", "13, 25", "more output tokens, no significant gain"),
    ("paths (self-consistency)", "5, 10, 20", "better at 10 than at 5, a little worse at 20"),
    ("rounds (self-refine)", "2, 4, 10", "better at 4 than at 2, a little worse at 10"),
)
"""What is varied, over which values, and the paper's finding in words."""

KAPPA: Final = "Fleiss' kappa over three runs: above 0.4 in 23 of 28 evaluations, 0.35 to 0.4 in 5."
