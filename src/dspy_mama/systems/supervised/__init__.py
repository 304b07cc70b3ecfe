"""Classifiers that learn from gold labels: the paper's comparison, and controls, judged out of fold."""

from dspy_mama.systems.supervised.choice import make_learner
from dspy_mama.systems.supervised.crossval import DomainFolds, OutOfFold, cross_validate
from dspy_mama.systems.supervised.folds import question_groups, stratified_folds
from dspy_mama.systems.supervised.learners import Fitted, Learner
from dspy_mama.systems.supervised.record import baseline_records

__all__ = [
    "DomainFolds",
    "Fitted",
    "Learner",
    "OutOfFold",
    "baseline_records",
    "cross_validate",
    "make_learner",
    "question_groups",
    "stratified_folds",
]
