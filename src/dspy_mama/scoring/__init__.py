"""Pure scores from gold labels and verdicts, and the one adapter to DSPy metrics."""

from dspy_mama.scoring.curves import probability_curves, reliability_points, roc_points
from dspy_mama.scoring.labels import COLUMNS, KINDS, Labels, align, labels_from_arrays, labels_from_records, phases_run
from dspy_mama.scoring.metric import RiskMetric, example_gold, labelled, risk_metric
from dspy_mama.scoring.outside import Joined, join_predictions, score_notes
from dspy_mama.scoring.score import number, score_labels, scored_probabilities

__all__ = [
    "COLUMNS",
    "KINDS",
    "Joined",
    "Labels",
    "RiskMetric",
    "align",
    "example_gold",
    "join_predictions",
    "labelled",
    "labels_from_arrays",
    "labels_from_records",
    "number",
    "phases_run",
    "probability_curves",
    "reliability_points",
    "risk_metric",
    "roc_points",
    "score_labels",
    "score_notes",
    "scored_probabilities",
]
