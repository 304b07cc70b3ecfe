import struct
import sys

from dspy_mama.reporting import run_figures, summarise, to_png
from dspy_mama.reporting.comparison_figures import cost_figure, cost_words, forest_figure, forest_words, kappa_heatmap
from dspy_mama.reporting.figures import describe


def test_figures_are_png_of_a_readable_size_and_reproducible(records):
    summary = summarise(records, resamples=50)
    figures = run_figures(summary)
    assert list(figures) == ["confusion", "phase_gain", "reliability", "roc"]
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


def test_probabilities_are_drawn_only_where_there_are_any(records):
    for record in records:
        for verdict in record["phases"]["consensus"].values():
            verdict["probability"] = None
    assert list(run_figures(summarise(records, resamples=10))) == ["confusion", "phase_gain"]


def test_one_class_has_a_reliability_and_no_roc(records):
    for record in records:
        record["gold"] = {"medical": True}
    summary = summarise(records, resamples=10)
    assert summary["curves"]["medical"]["roc"] is None
    figures = run_figures(summary)
    assert "reliability" in figures
    assert "roc" not in figures
    assert "Reliability diagram. medical: 1.00 risky where" in describe("reliability", summary)


def test_the_forest_has_a_row_a_system_and_says_what_is_not_scored(records):
    score = summarise(records, resamples=50)["phases"]
    for row in (record["gold"] for record in records):
        row["legal"] = None
    systems = {**score, "without legal": summarise(records, resamples=50)["final"]}
    figure = forest_figure(systems)
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert len(figure.axes) == 5
    assert texts.count("not scored") == 2
    value = systems["consensus"]["average_macro_f1"]
    assert f"{value:.3f}" in texts
    assert f"consensus {value:.3f} (" in forest_words(systems)
    assert to_png(figure) == to_png(forest_figure(systems))


def test_an_unknown_cost_is_left_out_and_not_drawn_as_free(records):
    systems = summarise(records, resamples=20)["phases"]
    costs = {"initial": 0.01, "verification": None, "consensus": 0.03}
    figure = cost_figure(systems, costs, "money per pair")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["initial", "consensus"]
    assert "verification" not in cost_words(systems, costs, "money per pair")
    assert cost_figure(systems, {"initial": 0.01}, "money per pair") is None


def test_the_heat_map_prints_every_kappa():
    figure = kappa_heatmap(["T=0", "T=1"], ["medical", "legal"], [[1.0, 0.42], [-0.1, None]], "Fleiss' kappa")
    assert [text.get_text() for text in figure.axes[0].texts] == ["1.00", "0.42", "-0.10", "undefined"]
    assert to_png(figure)[:4] == b"\x89PNG"


def test_drawing_leaves_pyplot_alone(records):
    before = "matplotlib.pyplot" in sys.modules
    run_figures(summarise(records[:5], resamples=10))
    assert ("matplotlib.pyplot" in sys.modules) == before
