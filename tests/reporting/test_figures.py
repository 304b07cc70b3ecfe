import struct
import sys

from dspy_mama.reporting import run_figures, summarise, to_png
from dspy_mama.reporting.figures import describe


def test_figures_are_png_of_a_readable_size_and_reproducible(records):
    summary = summarise(records, resamples=50)
    figures = run_figures(summary)
    assert list(figures) == ["confusion", "phase_gain"]
    for name, figure in figures.items():
        data = to_png(figure)
        width, height = struct.unpack(">II", data[16:24])
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert min(width, height) > 400
        assert data == to_png(run_figures(summary)[name])


def test_the_words_for_a_figure_hold_its_numbers(records):
    summary = summarise(records, resamples=10)
    own = summary["phases"]["consensus"]["domains"]["legal"]
    assert f"MA3 consensus legal: TP {own['tp']}, FP {own['fp']}" in describe("confusion", summary)
    assert f"{summary['phases']['initial']['average_macro_f1']:.3f}" in describe("phase_gain", summary)


def test_without_gold_there_is_no_figure(records):
    for record in records:
        record["gold"] = None
    assert run_figures(summarise(records, resamples=10)) == {}


def test_one_domain_and_one_phase_and_one_pair_can_be_drawn(make_record):
    record = make_record(1, (True, None, None), {"initial": (True, False, False)})
    figures = run_figures(summarise([record], resamples=10))
    assert all(to_png(figure) for figure in figures.values())


def test_drawing_leaves_pyplot_alone(records):
    before = "matplotlib.pyplot" in sys.modules
    run_figures(summarise(records[:5], resamples=10))
    assert ("matplotlib.pyplot" in sys.modules) == before
