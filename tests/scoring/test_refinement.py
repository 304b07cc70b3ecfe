import pytest

from dspy_mama.scoring.refinement import (
    RefinedItem,
    Score,
    downgraded,
    downgrades,
    grouped,
    iteration_counts,
    level_counts,
    mean_velocity,
    per_item_reduction,
    reduction,
    velocity,
)


def test_a_reduction_from_nothing_is_undefined():
    assert reduction(0, 0) is None
    assert reduction(4, 1) == 0.75
    assert reduction(2, 3) == -0.5
    assert per_item_reduction([(Score(0, 1), Score(0, 1)), (Score(4, 1), Score(1, 1))]) == (0.75, 1)
    assert per_item_reduction([(Score(0, 1), Score(2, 1))]) == (None, 1)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(3, 2, True), (5, 1, True), (5, 3, False), (2, 1, None), (1, 5, None), (2.5, 2, True), (3, 2.5, False)],
)
def test_a_downgrade_goes_from_three_or_more_to_two_or_less(before, after, expected):
    assert downgraded(Score(0, before), Score(0, after)) is expected


def test_downgrades_say_of_how_many():
    pairs = [(Score(0, 4), Score(0, 2)), (Score(0, 2), Score(0, 1)), (Score(0, 5), Score(0, 4))]
    assert downgrades(pairs) == (1, 2)


def test_only_converged_items_have_an_iteration():
    items = [
        RefinedItem("a", True, 2),
        RefinedItem("b", False, 5),
        RefinedItem("c", None, 1),
        RefinedItem("d", True, 7),
    ]
    assert iteration_counts(items, 5) == {1: 0, 2: 1, 3: 0, 4: 0, 5: 0, 6: 0, 7: 1}


def test_levels_between_two_count_as_the_higher():
    assert level_counts([Score(0, 1), Score(0, 1.5), Score(0, 5)]) == {1: 1, 2: 1, 3: 0, 4: 0, 5: 1}


def test_a_mean_velocity_needs_every_run():
    assert velocity(4.8, 0.6, 2.34) == pytest.approx(1.795, abs=1e-3)
    assert mean_velocity([1.0, 2.0]) == 1.5
    assert mean_velocity([1.0, None]) is None


def test_groups_without_items_are_there():
    items = [RefinedItem("a", True, principle="II"), RefinedItem("b", True, principle=None)]
    assert {name: len(own) for name, own in grouped(items, "principle", ("I", "II")).items()} == {"I": 0, "II": 1}
