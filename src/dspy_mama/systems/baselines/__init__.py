"""Single-model baselines that take any signature: direct, chain of thought, self-consistency, self-refine."""

from dspy_mama.systems.baselines.consistency import SelfConsistency
from dspy_mama.systems.baselines.refinement import SelfRefine
from dspy_mama.systems.baselines.result import Attempt, BaselineResult, result_of
from dspy_mama.systems.baselines.single import ChainOfThought, Direct
from dspy_mama.systems.baselines.synonyms import SynonymMerger
from dspy_mama.systems.baselines.voting import same_text

__all__ = [
    "Attempt",
    "BaselineResult",
    "ChainOfThought",
    "Direct",
    "SelfConsistency",
    "SelfRefine",
    "SynonymMerger",
    "result_of",
    "same_text",
]
