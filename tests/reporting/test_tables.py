import io
from collections import Counter

import pytest
from rich.console import Console

from dspy_mama.reporting import markdown_tables, print_tables, run_tables, summarise
from dspy_mama.reporting.printing import show_tables
from dspy_mama.reporting.tables import Table


def printed(summary, width=200):
    stream = io.StringIO()
    print_tables(summary, Console(file=stream, width=width, force_terminal=True, color_system=None))
    return stream.getvalue()


@pytest.fixture
def summary(records):
    return summarise(records, resamples=100)


def test_terminal_shows_phases_domains_counts_and_unscored(summary):
    text = printed(summary)
    medical = summary["phases"]["consensus"]["domains"]["medical"]
    for part in ("MA1 initial", "MA2 verification", "MA3 consensus", "medical", "ethical", "legal", "Joint accuracy"):
        assert part in text
    assert f"{medical['macro_f1']:.3f} ({medical['ci95']['macro_f1'][0]:.3f} to" in text
    assert "2/126 (parse 2)" in text
    assert "MA1 → MA3" in text


def test_unknown_cost_is_said_and_a_partial_sum_is_a_lower_bound(summary, records):
    total = next(row for row in run_tables(summary)[-1].rows if row[0] == "Total")
    assert total[6] == "unknown"
    records[0]["usage"]["initial"]["cost"] = 0.25
    partly = next(row for row in run_tables(summarise(records, resamples=10))[-1].rows if row[0] == "Total")
    assert partly[6] == "≥ 0.2500"


def test_banner_stands_above_the_labels(summary):
    summary["label_banner"] = "SmolLM2-135M labels no better than chance"
    assert printed(summary).startswith("SmolLM2-135M labels")
    assert markdown_tables(summary).startswith("**SmolLM2-135M labels")


def test_without_gold_only_verdicts_are_shown(records):
    for record in records:
        record["gold"] = None
    summary = summarise(records, resamples=10)
    titles = [table.title for table in run_tables(summary)]
    assert titles == ["Verdicts (nothing to score: no verdict has a gold label)", "Usage"]
    assert "macro" not in printed(summary).lower()


def test_a_domain_without_gold_shows_dashes_and_its_warning(records):
    for record in records:
        record["gold"]["legal"] = None
    table = run_tables(summarise(records, resamples=10))[0]
    legal = next(row for row in table.rows if row[1] == "legal")
    assert legal[2:5] == ("0", "-", "-")
    assert legal[8:10] == ("-", "-")
    assert any("legal: no gold label" in note for note in table.notes)


def test_markdown_has_as_many_cells_in_every_row(summary):
    for block in markdown_tables(summary).split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({row.replace("\\|", "").count("|") for row in rows}) <= 1


def test_square_brackets_are_no_markup(summary):
    summary["label_banner"] = "[bold]model[/x]"
    assert "[bold]model[/x]" in printed(summary)


def test_eighty_columns_hold_every_number(summary):
    text = printed(summary, width=80)
    own = summary["phases"]["consensus"]
    low, high = own["domains"]["medical"]["ci95"]["macro_f1"]
    assert f"{low:.3f}, {high:.3f}".replace("0.", ".") in text
    assert "If wrong" in text
    assert f"{own['worst_case']['joint_accuracy']:.3f}".replace("0.", ".") in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_narrow_terminal_shortens_intervals_and_leaves_words_alone():
    cells = ("Too vague to help", "0.655 (0.569 to 0.738)", "0.0% (0.0% to 24.2%)", "12% to 67%")
    stream = io.StringIO()
    show_tables([Table("t", ("a", "b", "c", "d"), (cells,))], Console(file=stream, width=100))
    shown = stream.getvalue()
    assert "Too vague to help" in shown
    assert ".655 (.569, .738)" in shown
    assert "0.0% (0.0%, 24.2%)" in shown
    assert "12% to 67%" in shown


def test_a_very_narrow_terminal_does_not_fail(summary):
    assert "medical" in printed(summary, width=40)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [80, 132])
def test_no_part_of_a_cell_is_cut_off_however_narrow_the_window(terminal, width):
    header = ("Difference", "Measure", "Value (95% CI)", "Finding", "Right: only 1st / 2nd", "McNemar p")
    row = (f"embedding − {'a long name ' * 4}", "average", "+0.026 (-0.077, +0.130)", "higher", "10 / 11", "1.000")
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, color_system=None)
    show_tables([Table("Paired", header, (row,))], console)
    text = stream.getvalue().replace("0.", ".")
    wanted = Counter("".join([*header, *row]).replace("0.", ".")) - Counter({" ": 10**6})
    assert wanted - Counter(text) == Counter()
    if terminal:
        assert max(len(line) for line in text.splitlines()) <= width
    else:
        assert "+.026 (-.077, +.130)" in text
