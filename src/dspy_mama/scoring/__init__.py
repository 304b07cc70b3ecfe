"""Pure scores from gold labels and verdicts, and the one adapter to DSPy metrics."""

from dspy_mama.scoring.labels import COLUMNS, KINDS, Labels, align, labels_from_arrays, labels_from_records, phases_run
from dspy_mama.scoring.metric import RiskMetric, example_gold, labelled, risk_metric
from dspy_mama.scoring.score import number, score_labels, scored_probabilities

__all__ = [
    "COLUMNS",
    "KINDS",
    "Labels",
    "RiskMetric",
    "align",
    "example_gold",
    "labelled",
    "labels_from_arrays",
    "labels_from_records",
    "number",
    "phases_run",
    "risk_metric",
    "score_labels",
    "scored_probabilities",
]
