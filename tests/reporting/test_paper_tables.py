import pytest

from dspy_mama.reporting import published, summarise
from dspy_mama.reporting.comparison import compare_systems
from dspy_mama.reporting.evaluation import score
from dspy_mama.reporting.paper_tables import ablations_beside_paper, bootstrap_beside_paper, systems_beside_paper
from dspy_mama.scoring import labels_from_arrays, labels_from_records


def cells(table, name, measure):
    (row,) = (row for row in table.rows if row[:2] == (name, measure))
    return row[2:]


@pytest.mark.parametrize("name", ["full", "ma"])
def test_what_is_printed_agrees_with_itself(name):
    """The printed F1 of each domain follows from its printed errors and the positives of the test set."""
    printed = published.ABLATIONS[name]
    positives = {"medical": 51, "ethical": 8, "legal": 18}
    gold, said = [], []
    for domain, (fn, fp) in printed.errors.items():
        p, n = positives[domain], published.N - positives[domain]
        gold.append([1] * p + [0] * n)
        said.append([0] * fn + [1] * (p - fn) + [1] * fp + [0] * (n - fp))
    found = score(labels_from_arrays(list(zip(*gold, strict=True)), list(zip(*said, strict=True))), resamples=10)
    for domain, value in printed.macro_f1.items():
        assert round(found["domains"][domain]["macro_f1"], 3) == value
    assert round(found["average_macro_f1"], 3) == printed.average


def test_what_was_not_run_and_what_is_not_printed_say_so():
    table = systems_beside_paper({})
    assert cells(table, "rag", "average macro-F1") == ("not run", "0.800 (0.733 to 0.852)")
    assert cells(table, "baseline", "every measure") == ("not run", "not printed")
    assert cells(table, "rag_foreign/ek", "joint accuracy") == ("not run", "25/126 = 0.198")
    assert cells(ablations_beside_paper({}), "ma", "legal macro-F1") == ("not run", "0.843; FN 6, FP 3")
    deltas = bootstrap_beside_paper({}, None)
    assert cells(deltas, "rag − enhanced", "joint accuracy") == (
        "not run", "not run", "(+0.003 to +0.106)", "higher",
    )  # fmt: skip


def test_our_numbers_stand_beside_the_printed_with_their_intervals(records):
    summary = summarise(records, resamples=50)
    table = systems_beside_paper({"rag": summary, "baseline": summary})
    final = summary["final"]
    ours, printed = cells(table, "rag", "medical macro-F1")
    own = final["domains"]["medical"]
    low, high = own["ci95"]["macro_f1"]
    assert ours == f"{own['macro_f1']:.3f} ({low:.3f} to {high:.3f}); FN {own['fn']}, FP {own['fp']}"
    assert printed == "0.673; FN 4, FP 37"
    assert cells(table, "baseline", "joint accuracy")[1] == "not printed"


def test_differences_come_from_shared_resamples(records):
    summary = summarise(records, resamples=50)
    systems = {"baseline": labels_from_records(records, "initial"), "rag": labels_from_records(records, "consensus")}
    found = compare_systems(systems, resamples=50)
    table = bootstrap_beside_paper({"rag": summary}, found)
    own = found["deltas"]["baseline->rag"]["average_macro_f1"]
    ours, finding, printed, theirs = cells(table, "rag − baseline", "macro-F1, average")
    assert ours.startswith(f"{own['value']:+.3f} (")
    assert (finding, printed, theirs) == (own["finding"], "+0.037 (+0.003 to +0.074)", "higher")
    assert cells(table, "rag − enhanced", "macro-F1, average")[0] == "not run"
    assert cells(table, "rag: MA1 → MA2", "macro-F1, average")[1] == "higher"
    assert cells(table, "baseline: MA2 → MA3", "macro-F1, average") == ("not run", "not run", "no gain", "-")
