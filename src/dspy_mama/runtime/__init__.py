"""Carries a run out: items (pairs, requests, cases) through a program into the run store."""

from dspy_mama.runtime.failures import failure_record, identity
from dspy_mama.runtime.items import ItemKind, PairKind
from dspy_mama.runtime.keys import pair_key
from dspy_mama.runtime.progress import Progress, make_progress
from dspy_mama.runtime.result import RunResult, TooManyFailuresError
from dspy_mama.runtime.runner import run_items, run_pairs
from dspy_mama.runtime.unscored import UnscoredRate, check_unscored

__all__ = [
    "ItemKind",
    "PairKind",
    "Progress",
    "RunResult",
    "TooManyFailuresError",
    "UnscoredRate",
    "check_unscored",
    "failure_record",
    "identity",
    "make_progress",
    "pair_key",
    "run_items",
    "run_pairs",
]
