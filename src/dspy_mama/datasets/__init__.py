"""Data sets of question-answer pairs: one loader a corpus, checks by row and reason, hash splits, DSPy examples."""

from dspy_mama.datasets.examples import to_examples
from dspy_mama.datasets.label_files import LabelFile, read_labels
from dspy_mama.datasets.predictions import write_predictions
from dspy_mama.datasets.registry import LOADERS, LoadedPairs, load_pairs, pairs_from_dataset
from dspy_mama.datasets.splits import SHARES, split_of, split_pairs

__all__ = [
    "LOADERS",
    "SHARES",
    "LabelFile",
    "LoadedPairs",
    "load_pairs",
    "pairs_from_dataset",
    "read_labels",
    "split_of",
    "split_pairs",
    "to_examples",
    "write_predictions",
]
