"""Where the paper contradicts itself: the printed figure, and the one its other figures give."""

from __future__ import annotations

import pytest

from dspy_mama.reporting.refinement_estimates import loop_summary
from dspy_mama.reporting.refinement_published import (
    CONTRADICTIONS,
    LOOPS,
    QUERIES_PER_HOUR,
    SECONDS_PER_QUERY,
    VELOCITY,
)
from dspy_mama.scoring.refinement import mean_velocity
from reporting.refinement_items import category_items, counted_items, level_items, principle_items

KNOWN = {own.key: own for own in CONTRADICTIONS}


def overall(make, figure):
    """What our code makes of items built from one table, for both generators."""
    return [loop_summary(make(loop), resamples=10)["overall"][figure] for loop in LOOPS]


def derive(key):
    if key == "counts":
        return [sum(loop.counts.values()) for loop in LOOPS]
    if key == "mean_iterations":
        return [own["value"] for own in overall(counted_items, "mean_iterations")]
    if key == "sd_iterations":
        return [own["value"] for own in overall(counted_items, "sd_iterations")]
    if key == "mean_of_principles":
        return [own["value"] for own in overall(principle_items, "mean_iterations")]
    if key == "downgrade":
        return [own["value"] for own in overall(level_items, "downgrade")]
    if key == "reduction":
        return [own["value"] for own in overall(category_items, "reduction")]
    if key == "velocity":
        runs = [loop_summary(category_items(loop), resamples=10)["categories"] for loop in LOOPS]
        return [mean_velocity([run[name]["velocity"]["value"] for run in runs]) for name in VELOCITY]
    if key == "privacy":
        return [LOOPS[0].principles["IV"][0]]
    return [3600 / QUERIES_PER_HOUR]


def printed(key):
    table = {
        "counts": [loop.converged for loop in LOOPS],
        "mean_iterations": [loop.mean for loop in LOOPS],
        "sd_iterations": [loop.sd for loop in LOOPS],
        "mean_of_principles": [loop.mean for loop in LOOPS],
        "downgrade": [loop.downgrade for loop in LOOPS],
        "reduction": [loop.reduction for loop in LOOPS],
        "velocity": list(VELOCITY.values()),
        "privacy": [LOOPS[1].principles["IV"][0]],
        "throughput": [SECONDS_PER_QUERY],
    }
    return table[key]


@pytest.mark.parametrize("key", KNOWN)
def test_both_values_of_a_contradiction_are_held(key):
    own = KNOWN[key]
    digits = 3 if key in ("downgrade", "reduction") else 2
    assert list(own.printed) == pytest.approx(printed(key))
    assert [round(value, digits) for value in derive(key)] == pytest.approx(list(own.derived))
    assert own.printed != own.derived


def test_what_the_paper_says_of_its_own_tables_and_what_holds():
    first, second = LOOPS
    assert [sum(shares[side] for shares in loop.levels.values()) for loop in LOOPS for side in (0, 1)] == (
        pytest.approx([1, 1, 1, 1])
    )
    assert sum(first.principles[name][0] < second.principles[name][0] for name in first.principles) == 7
    assert [loop.converged + loop.failed for loop in LOOPS] == [900, 900]
    assert [round(loop.converged / 900, 3) for loop in LOOPS] == [first.convergence, second.convergence]
    assert second.mean - first.mean == pytest.approx(0.33)
