"""What a compile run's tables say: never more than was measured."""

from dspy_mama.reporting.compilation import compilation_tables


def side(value, low=0.2, high=0.9, n=12):
    return {"value": value, "ci95": None if value is None else [low, high], "n": n}


def measured(finding="not distinguishable"):
    gap = {"value": 0.1, "ci95": [-0.2, 0.4], "finding": finding}
    return {"before": side(0.5), "after": side(0.6), "difference": gap}


def document(**changes):
    plain = {
        "optimizer": "gepa", "target": "average_macro_f1", "kept": True, "reason": "kept: +0.100 on validation",
        "stopped": None, "splits": {"train": 16, "validation": 12, "test": 12},
        "candidates": [{"name": "uncompiled", **side(0.5)}, {"name": "gepa 1", **side(0.6)}], "chosen": "gepa 1",
        "validation": measured(), "test": measured(), "test_looked_at_before": 0,
    }  # fmt: skip
    return {**plain, **changes}


def test_both_splits_are_shown_with_their_paired_interval_and_finding():
    difference, candidates = compilation_tables(document())
    assert [row[0] for row in difference.rows] == ["test", "validation"]
    assert difference.rows[0][-2:] == ("+0.100 (-0.200 to +0.400)", "not distinguishable")
    assert [row[-1] for row in candidates.rows] == ["", "best"]
    assert "16 train, 12 validation, 12 test" in " ".join(difference.notes)


def test_where_no_test_pair_was_looked_at_it_is_said():
    difference, _ = compilation_tables(document(test=None))
    assert [row[0] for row in difference.rows] == ["validation"]
    assert "No test pair was looked at" in " ".join(difference.notes)


def test_folds_budgets_and_earlier_looks_are_named():
    nested = compilation_tables(document(folds=[{}, {}, {}], splits={"train": 23, "validation": 17, "test": 0}))[0]
    assert "3 nested folds" in " ".join(nested.notes)
    told = " ".join(
        compilation_tables(document(kept=False, stopped="9 calls are spent", test_looked_at_before=2))[0].notes
    )
    assert "both are the uncompiled program" in told
    assert "cut short: 9 calls are spent" in told
    assert "2 time(s) before" in told


def test_an_undefined_value_is_a_dash_and_not_a_zero():
    gap = {"value": None, "ci95": None, "finding": "undefined"}
    none = {"before": side(None), "after": side(None), "difference": gap}
    assert compilation_tables(document(test=none))[0].rows[0][2:5] == ("-", "-", "-")
