"""Per-item figures with given counts, means and standard deviations, as the paper's tables state them."""

from __future__ import annotations

import statistics
from itertools import cycle

from dspy_mama.reporting.refinement_published import PrintedLoop
from dspy_mama.scoring.refinement import RefinedItem, Score

OK = Score(0, 1)


def iterations_with(mean: float, sd: float, n: int, digits: int) -> list[int]:
    """Whole numbers 1 to 5 whose mean and standard deviation round to the given ones."""
    total = round(mean * n)
    for fives in range(n + 1):
        for fours in range(n - fives + 1):
            rest, left = n - fives - fours, total - 5 * fives - 4 * fours
            # ones + twos + threes = rest, and their sum is `left`.
            for threes in {0, (left - rest) // 4, (left - rest) // 2}:
                twos = left - rest - 2 * threes
                ones = rest - twos - threes
                if min(ones, twos, threes) < 0:
                    continue
                found = [1] * ones + [2] * twos + [3] * threes + [4] * fours + [5] * fives
                if round(statistics.stdev(found), digits) == sd and round(statistics.mean(found), digits) == mean:
                    return found
    raise AssertionError(f"no whole numbers have mean {mean} and deviation {sd}")


def spread(mean: float, n: int) -> list[int]:
    """Whole numbers as even as can be, whose sum is that of n times the mean."""
    whole, more = divmod(round(mean * n), n)
    return [whole + 1] * more + [whole] * (n - more)


def overall_items(loop: PrintedLoop, n: int = 900) -> list[RefinedItem]:
    """Items that have all five figures of Table I."""
    rounds = iterations_with(loop.mean, loop.sd, loop.converged, 2) + [5] * loop.failed
    down = round(loop.downgrade * n)
    before = spread(4.0, n)
    after = spread(4.0 * (1 - loop.reduction), n)
    return [
        RefinedItem(
            id=str(place),
            converged=place < loop.converged,
            iterations=rounds[place],
            before=Score(before[place], 4),
            after=Score(after[place], 2 if place < down else 3),
        )
        for place in range(n)
    ]


def counted_items(loop: PrintedLoop) -> list[RefinedItem]:
    """Items that converged as Table II counts them: 900 of them, though it says that some failed."""
    rounds = [number for number, count in loop.counts.items() for _ in range(count)]
    return [RefinedItem(str(place), True, number, OK, OK) for place, number in enumerate(rounds)]


def failing_items(loop: PrintedLoop) -> list[RefinedItem]:
    """Items of which as many converged and failed as Table II says."""
    ended = [True] * loop.converged + [False] * loop.failed
    return [RefinedItem(str(place), converged, 2 if converged else 5, OK, OK) for place, converged in enumerate(ended)]


def principle_items(loop: PrintedLoop) -> list[RefinedItem]:
    """Items of Table III, 100 a principle."""
    return [
        RefinedItem(f"{name}-{place}", True, number, OK, OK, principle=name)
        for name, (mean, sd) in loop.principles.items()
        for place, number in enumerate(iterations_with(mean, sd, 100, 1))
    ]


def category_items(loop: PrintedLoop, n: int = 200) -> list[RefinedItem]:
    """Items of Table IV, as many a category, with the mean iterations of Table I."""
    rounds = cycle(spread(loop.mean, 100))
    return [
        RefinedItem(f"{name}-{place}", True, next(rounds), Score(before, 1), Score(after, 1), category=name)
        for name, means in loop.violations.items()
        for place, (before, after) in enumerate(zip(spread(means[0], n), spread(means[1], n), strict=True))
    ]


def level_items(loop: PrintedLoop, n: int = 900) -> list[RefinedItem]:
    """Items of Table V: the riskiest first on both sides."""
    sides = [
        [level for level, shares in sorted(loop.levels.items(), reverse=True) for _ in range(round(shares[side] * n))]
        for side in (0, 1)
    ]
    return [
        RefinedItem(str(place), True, 1, Score(0, before), Score(0, after))
        for place, (before, after) in enumerate(zip(*sides, strict=True))
    ]
