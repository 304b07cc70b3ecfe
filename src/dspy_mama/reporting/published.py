"""Figures that the paper on MA-MPA prints, to stand beside ours. What its text does not print is absent here.

Source: "A Multiassessment and Multiprofessional Agents Approach for Medical Chatbot Risk Estimation", test set of
n = 126 English pairs, GPT-4o at temperature 1. Intervals are 95 % percentile bootstrap intervals of 1,000 resamples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

N: Final = 126

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PrintedScore:
    """What is printed of one system's final phase.

    Attributes:
        macro_f1: By domain.
        errors: (false negatives, false positives) by domain.
        average: Mean macro-F1 of the three domains, with its interval where there is one.
        average_ci: Its interval.
        joint: Pairs with all three domains right, of 126.
        joint_ci: Interval of their share.
    """

    macro_f1: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    average: float | None = None
    average_ci: Bounds | None = None
    joint: int | None = None
    joint_ci: Bounds | None = None


@dataclass(frozen=True, slots=True)
class PrintedDelta:
    """A printed paired difference; a value that only its interval is printed of is None."""

    value: float | None
    ci: Bounds


_RAG: Final = PrintedScore(
    macro_f1={"medical": 0.673, "ethical": 0.905, "legal": 0.821},
    errors={"medical": (4, 37), "ethical": (1, 2), "legal": (7, 3)},
    average=0.800,
    average_ci=(0.733, 0.852),
    joint=76,
    joint_ci=(0.516, 0.683),
)

SYSTEMS: Final[Mapping[str, PrintedScore]] = {
    "baseline": PrintedScore(),
    "enhanced": PrintedScore(),
    "embedding": PrintedScore(),
    "rag": _RAG,
    "rag_foreign": PrintedScore(joint=72),
    "rag_foreign/ek": PrintedScore(joint=25),
}
"""Table 3: the four systems, and the sources of other countries with the method and alone."""

CLASSIFIERS: Final[Mapping[str, PrintedScore]] = {
    "bert-base-uncased": PrintedScore(average=0.480, average_ci=(0.427, 0.532)),
    "BioClinicalBERT": PrintedScore(average=0.521, average_ci=(0.470, 0.570)),
}
"""Supervised classifiers of Table 3; they are no systems of this library."""

ABLATIONS: Final[Mapping[str, PrintedScore]] = {
    "full": _RAG,
    "ma": PrintedScore(
        macro_f1={"medical": 0.674, "ethical": 0.797, "legal": 0.843},
        errors={"medical": (11, 30), "ethical": (4, 1), "legal": (6, 3)},
        average=0.771,
        joint=79,
    ),
    "ma_mpa": PrintedScore(),
    "ma_ek": PrintedScore(),
    "ma_without_ma2": PrintedScore(),
    "mpa": PrintedScore(),
    "ek": PrintedScore(),
}
"""Ablations of the RAG system. The average of `ma` is the mean of its three domains."""

MACRO_F1_DELTAS: Final[Mapping[tuple[str, str], PrintedDelta]] = {
    ("baseline", "rag"): PrintedDelta(0.037, (0.003, 0.074)),
    ("enhanced", "rag"): PrintedDelta(0.054, (0.010, 0.100)),
}
"""Second minus first, average macro-F1."""

JOINT_DELTAS: Final[Mapping[tuple[str, str], PrintedDelta]] = {
    ("baseline", "rag"): PrintedDelta(None, (-0.029, 0.077)),
    ("enhanced", "rag"): PrintedDelta(None, (0.003, 0.106)),
}
"""Second minus first, joint accuracy."""

FIRST_GAIN: Final[Bounds] = (0.176, 0.214)
"""Smallest and largest gain from MA1 to MA2 over the four systems, average macro-F1."""

SECOND_GAIN: Final[Mapping[str, str]] = {
    "baseline": "no gain",
    "enhanced": "a gain",
    "embedding": "a gain",
    "rag": "a gain",
}
"""From MA2 to MA3, in the paper's finding; it prints no number in the text."""
