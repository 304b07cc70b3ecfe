"""Summary, tables, figures and the HTML report of a run, from its records alone."""

from dspy_mama.reporting.evaluation import compare, flat_metrics, score, score_phases, score_systems
from dspy_mama.reporting.figures import run_figures, to_png
from dspy_mama.reporting.html import render_report, write_report
from dspy_mama.reporting.printing import markdown_tables, print_tables
from dspy_mama.reporting.summary import EMBEDDED_BANNER, NO_SUBSTITUTE, label_banner, summarise
from dspy_mama.reporting.tables import run_tables

__all__ = [
    "EMBEDDED_BANNER",
    "NO_SUBSTITUTE",
    "compare",
    "flat_metrics",
    "label_banner",
    "markdown_tables",
    "print_tables",
    "render_report",
    "run_figures",
    "run_tables",
    "score",
    "score_phases",
    "score_systems",
    "summarise",
    "to_png",
    "write_report",
]
