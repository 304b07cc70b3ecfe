"""Fed with items built from the paper's tables, the tables print the paper's figures."""

from __future__ import annotations

import pytest

from dspy_mama.reporting.refinement_estimates import loop_summary
from dspy_mama.reporting.refinement_paper import (
    iterations_table,
    levels_table,
    loop_tables,
    overall_table,
    principles_table,
    violations_table,
)
from dspy_mama.reporting.refinement_published import LOOPS
from dspy_mama.scoring.refinement import RefinedItem, Score
from reporting.refinement_items import (
    category_items,
    counted_items,
    failing_items,
    level_items,
    overall_items,
    principle_items,
)

BOTH = pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)


def summary(items, **options):
    return loop_summary(items, resamples=50, **options)


def column(table, name):
    place = next(number for number, head in enumerate(table.header) if head.startswith(name))
    return {row[0]: row[place] for row in table.rows}


def bare(cell):
    """The figure without its count and its interval."""
    return cell.split(" = ")[-1].split(" (")[0].split(", n ")[0]


@BOTH
def test_table_one_prints_the_papers_figures(loop):
    table = overall_table({"ours": summary(overall_items(loop))})
    ours, theirs = column(table, "ours"), column(table, loop.name)
    for name in ("Convergence rate", "Mean iterations", "Std dev", "Violation reduction", "Risk downgrade"):
        assert bare(ours[name]) == theirs[name], name


@BOTH
def test_table_two_prints_the_papers_counts(loop):
    counted = iterations_table({"ours": summary(counted_items(loop))})
    for step in "12345":
        assert column(counted, "ours")[step] == column(counted, loop.name)[step]
    ended = iterations_table({"ours": summary(failing_items(loop))})
    for name in ("Converged", "Failed"):
        assert column(ended, "ours")[name] == column(ended, loop.name)[name]


@BOTH
def test_table_three_prints_the_papers_figures(loop):
    table = principles_table({"ours": summary(principle_items(loop))})
    ours, theirs = column(table, "ours"), column(table, loop.name)
    assert len(ours) == 10
    for name in list(ours)[:9]:
        assert bare(ours[name]) == theirs[name]


def test_table_four_prints_the_papers_figures():
    table = violations_table({loop.name + ":": summary(category_items(loop)) for loop in LOOPS})
    for loop in LOOPS:
        ours, theirs = column(table, f"{loop.name}:: before"), column(table, f"{loop.name} (printed)")
        assert {name: bare(cell) for name, cell in ours.items()} == theirs
    velocity = column(table, "Velocity, mean of runs")
    printed = column(table, "Velocity (printed)")
    assert velocity == {"Emergency": "1.70", "Diagnostic": "1.14", "Therapeutic": "1.06", "Preventive": "0.64"}
    assert printed == {"Emergency": "1.70", "Diagnostic": "1.15", "Therapeutic": "1.06", "Preventive": "0.65"}


@BOTH
def test_table_five_prints_the_papers_shares(loop):
    table = levels_table({"ours": summary(level_items(loop))})
    before, after, theirs = (column(table, name) for name in ("ours: initial", "ours: final", loop.name))
    assert {name: f"{bare(before[name])} to {bare(after[name])}" for name in before} == theirs


def test_every_figure_stands_beside_the_papers_and_has_an_interval():
    tables = loop_tables({"ours": summary(overall_items(LOOPS[0]))})
    assert [table.title.split(":")[0] for table in tables] == [f"Table {n}" for n in ("I", "II", "III", "IV", "V")]
    for table in tables:
        assert all(len(row) == len(table.header) for row in table.rows)
    rates = column(tables[0], "ours")
    assert rates["Convergence rate"] == "848/900 = 94.2% (92.5% to 95.6%)"
    assert " to " in rates["Mean iterations"]


def test_what_is_undefined_is_a_dash_and_not_a_zero():
    nothing = [RefinedItem("a", True, 1, Score(0, 1), Score(0, 1)), RefinedItem("b", None)]
    ours = column(overall_table({"ours": summary(nothing)}), "ours")
    assert ours["Violation reduction"] == "-"
    assert ours["Risk downgrade"] == "0/0 = -"
    assert ours["Std dev"] == "-"
    assert ours["Reduction, mean of items"] == "- (1 undefined)"
    assert ours["Unscored"] == "1/2"


def test_an_unscored_item_counts_neither_as_converged_nor_as_failed():
    items = [RefinedItem("a", True, 1, Score(3, 3), Score(0, 1)), RefinedItem("b", None, 2, Score(9, 5), None)]
    found = summary(items)
    assert found["overall"]["convergence"]["n"] == 1
    assert found["failed"] == 0
    assert found["overall"]["convergence_if_unscored_failed"]["value"] == 0.5
    assert found["overall"]["reduction"]["before"]["value"] == 3


def test_the_final_check_stands_apart_from_the_loop():
    items = [
        RefinedItem("a", True, 2, Score(4, 4), Score(1, 2), Score(1, 2)),
        RefinedItem("b", False, 5, Score(6, 4), Score(4, 3), Score(0, 1)),
    ]
    found = summary(items)
    assert found["overall"]["convergence"]["count"] == 1
    assert found["overall"]["downgrade"]["count"] == 1
    assert found["overall"]["reduction"]["value"] == pytest.approx(0.5)
    assert found["final_check"]["checked"] == 1
    assert found["final_check"]["downgrade"]["count"] == 2
    assert found["final_check"]["reduction"]["value"] == pytest.approx(0.9)


def test_intervals_do_not_depend_on_the_order_of_items():
    items = overall_items(LOOPS[1])
    assert summary(items) == summary(items[::-1])
