"""Domain language of the library: cases, outcomes, ports, errors and ids. Imports no framework."""

from dspy_mama.core.cases import DOMAINS, PHASES, Domain, Passage, Phase, QAPair
from dspy_mama.core.errors import DeclarationError, ExecutionError, MamaError
from dspy_mama.core.outcomes import UNDETERMINED, Outcome, Scored, Undetermined, Unscored, UnscoredKind

__all__ = [
    "DOMAINS",
    "PHASES",
    "UNDETERMINED",
    "DeclarationError",
    "Domain",
    "ExecutionError",
    "MamaError",
    "Outcome",
    "Passage",
    "Phase",
    "QAPair",
    "Scored",
    "Undetermined",
    "Unscored",
    "UnscoredKind",
]
