"""Figures that the paper on evaluation loops prints, to stand beside ours, and where they contradict one another.

Source: "Improving the Safety and Trustworthiness of Medical AI via Multi-Agent Evaluation Loops", 900 prompts of
MedSafetyBench, 100 a principle; evaluators LLaMA 3.1 and Phi-4, temperature 0.7. No interval is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

N: Final = 900
PER_PRINCIPLE: Final = 100

PRINCIPLE_NAMES: Final[Mapping[str, str]] = {
    "I": "Competence",
    "II": "Professionalism",
    "III": "Legal",
    "IV": "Privacy",
    "V": "Education",
    "VI": "Autonomy",
    "VII": "Public Health",
    "VIII": "Patient Welfare",
    "IX": "Access Equity",
}
"""Short names of Table III."""

INTERPRETATIONS: Final[Mapping[int, str]] = {
    1: "Converged immediately",
    2: "Converged after one revision",
    3: "Converged after standard refinement",
    4: "Required multiple corrections",
    5: "Converged at the iteration limit",
}
"""Words of Table II."""


@dataclass(frozen=True, slots=True)
class PrintedLoop:
    """What is printed of one generator.

    Attributes:
        name: The generator.
        convergence: Share converged, Table I.
        mean: Mean iterations among converged, Tables I and III.
        sd: Their standard deviation.
        reduction: Share of violations that is gone, Table I.
        downgrade: Share downgraded, Table I.
        counts: Converged by iteration, Table II.
        converged: Prompts that met the thresholds, Table II.
        failed: Prompts that did not, Table II.
        principles: Mean and standard deviation of iterations, Table III.
        violations: Mean violations before and after by category, Table IV.
        levels: Share before and after by level, Table V.
    """

    name: str
    convergence: float
    mean: float
    sd: float
    reduction: float
    downgrade: float
    counts: Mapping[int, int]
    converged: int
    failed: int
    principles: Mapping[str, tuple[float, float]]
    violations: Mapping[str, tuple[float, float]]
    levels: Mapping[int, tuple[float, float]]


DEEPSEEK_R1: Final = PrintedLoop(
    name="DeepSeek R1",
    convergence=0.942,
    mean=2.34,
    sd=1.12,
    reduction=0.891,
    downgrade=0.921,
    counts={1: 252, 2: 378, 3: 216, 4: 36, 5: 18},
    converged=848,
    failed=52,
    principles={
        "I": (2.3, 1.0),
        "II": (2.1, 0.9),
        "III": (2.8, 1.3),
        "IV": (2.6, 1.2),
        "V": (1.9, 0.8),
        "VI": (2.4, 1.1),
        "VII": (1.8, 0.8),
        "VIII": (3.2, 1.4),
        "IX": (2.7, 1.2),
    },
    violations={
        "emergency": (4.8, 0.6),
        "diagnostic": (3.2, 0.4),
        "therapeutic": (2.9, 0.3),
        "preventive": (1.8, 0.1),
    },
    levels={1: (0.12, 0.67), 2: (0.18, 0.28), 3: (0.35, 0.05), 4: (0.28, 0.0), 5: (0.07, 0.0)},
)

MED_PALM: Final = PrintedLoop(
    name="Med-PaLM",
    convergence=0.918,
    mean=2.67,
    sd=1.28,
    reduction=0.854,
    downgrade=0.906,
    counts={1: 207, 2: 342, 3: 252, 4: 72, 5: 27},
    converged=826,
    failed=74,
    principles={
        "I": (2.5, 1.1),
        "II": (2.2, 0.9),
        "III": (3.1, 1.4),
        "IV": (2.9, 1.3),
        "V": (1.8, 0.8),
        "VI": (2.6, 1.2),
        "VII": (1.7, 0.8),
        "VIII": (3.5, 1.5),
        "IX": (2.9, 1.3),
    },
    violations={
        "emergency": (5.1, 0.8),
        "diagnostic": (3.4, 0.5),
        "therapeutic": (3.1, 0.4),
        "preventive": (1.6, 0.1),
    },
    levels={1: (0.10, 0.64), 2: (0.20, 0.30), 3: (0.38, 0.06), 4: (0.25, 0.0), 5: (0.07, 0.0)},
)

LOOPS: Final = (DEEPSEEK_R1, MED_PALM)

VELOCITY: Final[Mapping[str, float]] = {"emergency": 1.70, "diagnostic": 1.15, "therapeutic": 1.06, "preventive": 0.65}
"""Table IV; one column for both generators, and no definition."""

QUERIES_PER_HOUR: Final = 150
SECONDS_PER_QUERY: Final = 8.5
"""Section V-D."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A printed figure that other printed figures do not give.

    Attributes:
        key: Short name.
        what: Which figures disagree.
        printed: The printed figure, DeepSeek R1 first where both generators have one.
        derived: What the other printed figures give, rounded to the digits shown.
        reading: What this library does.
    """

    key: str
    what: str
    printed: tuple[float, ...]
    derived: tuple[float, ...]
    reading: str


CONTRADICTIONS: Final = (
    Contradiction(
        "counts",
        "Table II: the counts of iterations 1 to 5 are those of converged prompts, yet they add up to all 900",
        printed=(848, 826),
        derived=(900, 900),
        reading="counts by iteration and failed prompts together are all prompts that could be scored",
    ),
    Contradiction(
        "mean_iterations",
        "Table I against Table II: mean iterations",
        printed=(2.34, 2.67),
        derived=(2.10, 2.30),
        reading="mean over converged prompts alone, from their own counts",
    ),
    Contradiction(
        "sd_iterations",
        "Table I against Table II: standard deviation of iterations",
        printed=(1.12, 1.28),
        derived=(0.92, 1.01),
        reading="sample standard deviation over converged prompts alone",
    ),
    Contradiction(
        "mean_of_principles",
        "Table III: with 100 prompts a principle, the mean of the nine means against the overall mean",
        printed=(2.34, 2.67),
        derived=(2.42, 2.58),
        reading="the overall mean is over prompts, so that a principle counts by its converged prompts",
    ),
    Contradiction(
        "downgrade",
        "Table I against Table V: of prompts that begin at level 3 or above, those that end below it",
        printed=(0.921, 0.906),
        derived=(0.929, 0.914),
        reading="the denominator is the prompts that begin at level 3 or above; it is printed with the rate",
    ),
    Contradiction(
        "reduction",
        "Table I against Table IV: violation reduction, with categories of equal size",
        printed=(0.891, 0.854),
        derived=(0.890, 0.864),
        reading="one minus the ratio of mean violations, over prompts",
    ),
    Contradiction(
        "velocity",
        "Table IV: velocity (undefined) as the mean over generators of (before - after) / mean iterations",
        printed=(1.70, 1.15, 1.06, 0.65),
        derived=(1.70, 1.14, 1.06, 0.64),
        reading="that definition, by run; the mean over runs stands beside it",
    ),
    Contradiction(
        "privacy",
        "Section V against Table III: Med-PaLM is said to do better on privacy (IV), yet its mean iterations there "
        "(first) are more than DeepSeek R1's (second)",
        printed=(2.9,),
        derived=(2.6,),
        reading="no claim without an interval",
    ),
    Contradiction(
        "throughput",
        "Section V-D: 150 queries an hour are 24 s a query, against a latency of 8.5 s (sequential processing)",
        printed=(8.5,),
        derived=(24.0,),
        reading="wall time of the run and seconds of LM calls are both reported",
    ),
)
"""Documented, not reproduced; `tests/reporting/test_refinement_published.py` derives every second figure anew.

Beyond figures: the loop is called deterministic although every agent samples at temperature 0.7.
"""
