"""Carries a run out: pairs through an audit into the run store."""

from dspy_mama.runtime.failures import failure_record, identity
from dspy_mama.runtime.keys import pair_key
from dspy_mama.runtime.progress import Progress, make_progress
from dspy_mama.runtime.result import RunResult, TooManyFailuresError
from dspy_mama.runtime.runner import run_pairs
from dspy_mama.runtime.unscored import UnscoredRate, check_unscored

__all__ = [
    "Progress",
    "RunResult",
    "TooManyFailuresError",
    "UnscoredRate",
    "check_unscored",
    "failure_record",
    "identity",
    "make_progress",
    "pair_key",
    "run_pairs",
]
