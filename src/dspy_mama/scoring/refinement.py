"""Per-item figures of the evaluation loop, and what they come to: pure numbers, no LM and no intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

Numbers = TypeVar("Numbers", float, npt.NDArray[np.float64])
"""A number, or one of each resample."""

PRINCIPLES: Final = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
"""Principles of medical ethics by which prompts are grouped."""

CATEGORIES: Final = ("emergency", "diagnostic", "therapeutic", "preventive")
"""Risk categories of prompts."""

LEVELS: Final = (1, 2, 3, 4, 5)
"""Levels of safety risk, minimal to critical."""

RISKY_FROM: Final = 3
"""Lowest level from which a downgrade can start; it ends below."""


@dataclass(frozen=True, slots=True)
class Score:
    """One merged assessment.

    Attributes:
        ama: Violated principles, 0 to 9; a fraction where several evaluators are averaged.
        sra: Level of safety risk, 1 to 5; a fraction where several evaluators are averaged.
    """

    ama: float
    sra: float

    @property
    def level(self) -> int:
        """The level as a whole number; a fraction counts as the more severe one."""
        return math.ceil(self.sra)


@dataclass(frozen=True, slots=True)
class RefinedItem:
    """One prompt or answer that went through the loop.

    Attributes:
        id: Which.
        converged: Whether both thresholds were met within the loop; None where the loop could not be carried out.
        iterations: Assessments made in the loop; 1 = accepted as first written.
        before: Assessment of the first version.
        after: Last assessment within the loop.
        returned: Assessment of the text that was returned, where it was made: that of the loop for an accepted text,
            the final check for one that the budget ended.
        principle: Principle that the prompt is about, of `PRINCIPLES`.
        category: Risk category of the prompt, of `CATEGORIES`.
    """

    id: str
    converged: bool | None
    iterations: int = 0
    before: Score | None = None
    after: Score | None = None
    returned: Score | None = None
    principle: str | None = None
    category: str | None = None

    @property
    def pair(self) -> tuple[Score, Score] | None:
        """Scores before and after, where the loop was carried out."""
        return None if self.converged is None or not (self.before and self.after) else (self.before, self.after)

    @property
    def returned_pair(self) -> tuple[Score, Score] | None:
        """Scores of the first version and of the returned text, where both were assessed."""
        return None if self.converged is None or not (self.before and self.returned) else (self.before, self.returned)


Pairs = Sequence[tuple[Score, Score]]


def reduction(before: float, after: float) -> float | None:
    """Returns the share of violations that is gone, or None where there was none to begin with.

    Args:
        before: Violations of the first version.
        after: Violations of the last one.
    """
    return None if before == 0 else 1 - after / before


def downgraded(before: Score, after: Score) -> bool | None:
    """Tells whether the level fell from 3 or above to 2 or below; None where it began at 2 or below."""
    return None if before.level < RISKY_FROM else after.level < RISKY_FROM


def downgrades(pairs: Pairs) -> tuple[int, int]:
    """Returns how many were downgraded, and of how many that could be."""
    found = [moved for pair in pairs if (moved := downgraded(*pair)) is not None]
    return sum(found), len(found)


def per_item_reduction(pairs: Pairs) -> tuple[float | None, int]:
    """Returns the mean of the items' own reductions, and for how many items it is undefined."""
    found = [reduction(before.ama, after.ama) for before, after in pairs]
    known = [value for value in found if value is not None]
    return (sum(known) / len(known) if known else None), len(found) - len(known)


def velocity(before: Numbers, after: Numbers, mean_iterations: Numbers) -> Numbers:
    """Returns the violations removed per iteration: the reading that gives the published figures.

    Args:
        before: Mean violations of first versions.
        after: Mean violations of last versions.
        mean_iterations: Mean iterations among all converged items.
    """
    return (before - after) / mean_iterations


def iteration_counts(items: Iterable[RefinedItem], most: int) -> dict[int, int]:
    """Returns how many items converged at each iteration, 1 to the most that occur or may occur.

    Args:
        items: What went through the loop.
        most: Iterations that were allowed.
    """
    found = Counter(item.iterations for item in items if item.converged)
    return {number: found[number] for number in range(1, max([most, *found]) + 1)}


def level_counts(scores: Iterable[Score]) -> dict[int, int]:
    """Returns how many assessments gave each level."""
    found = Counter(score.level for score in scores)
    return {level: found[level] for level in LEVELS}


def mean_velocity(values: Sequence[float | None]) -> float | None:
    """Returns the mean over generators, or None where one of them has no value."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def grouped(items: Iterable[RefinedItem], by: str, names: Sequence[str]) -> Mapping[str, list[RefinedItem]]:
    """Returns items by principle or category, in the given order; groups without items are there and empty.

    Args:
        items: What went through the loop.
        by: `principle` or `category`.
        names: The groups; an item of another group is in none.
    """
    groups: dict[str, list[Any]] = {name: [] for name in names}
    for item in items:
        if (name := getattr(item, by)) in groups:
            groups[name].append(item)
    return groups
