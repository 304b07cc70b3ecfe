"""Results of the audit's phases, as frozen facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dspy_mama.core.cases import Domain, Passage
from dspy_mama.core.outcomes import Outcome, Scored
from dspy_mama.lm.usage import CallUsage


@dataclass(frozen=True, slots=True)
class RiskVerdict:
    """What one phase says of one domain.

    Attributes:
        domain: The risk domain.
        outcome: `Scored(True)` = risky, `Scored(False)` = safe, or why there is no label.
        probability: p(risky) in [0, 1], or None where the LM gave none.
        probability_source: `token`, `stated` or `none`.
        reason: The LM's reason, or None.
        findings: What the LM noted before its reason, or None.
        role: Profession in which MA2 judged, or None.
        query: What evidence was searched with, or None.
        passages: Evidence that was shown.
        citations: Ids of the passages that the note relies on; each is one of `passages`.
        invalid_citations: Cited numbers that no passage has.
    """

    domain: Domain
    outcome: Outcome[bool]
    probability: float | None = None
    probability_source: str = "none"
    reason: str | None = None
    findings: str | None = None
    role: str | None = None
    query: str | None = None
    passages: tuple[Passage, ...] = ()
    citations: tuple[str, ...] = ()
    invalid_citations: int = 0

    @property
    def risk(self) -> bool | None:
        """The label, or None where there is none."""
        return self.outcome.value if isinstance(self.outcome, Scored) else None

    @property
    def cited(self) -> tuple[Passage, ...]:
        """The passages that the note relies on, in the order cited; `citation` of each says where to check it."""
        shown = {passage.id: passage for passage in self.passages}
        return tuple(shown[id] for id in self.citations)


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """One phase's verdicts.

    Attributes:
        medical: Verdict on medical risk.
        ethical: Verdict on ethical risk.
        legal: Verdict on legal risk.
        usage: What the phase cost.
        model: Model id as the server resolved it, or None.
    """

    medical: RiskVerdict
    ethical: RiskVerdict
    legal: RiskVerdict
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None

    def verdict(self, domain: Domain) -> RiskVerdict:
        """Returns the verdict of a domain."""
        found: RiskVerdict = getattr(self, domain)
        return found


@dataclass(frozen=True, slots=True)
class RoleAssignment:
    """Who verifies a question (expert generation).

    Attributes:
        specialty: Medical specialty, or None where roles are off or none could be read.
        definition: What the specialty is about.
        source: Reference for the definition, as the LM or the mapping names it.
        source_verified: Whether a person has checked the reference; never true of generated ones.
        origin: `lm`, `table`, `mapping`, `agnostic` or `none`.
        outcome: Outcome of the routing call.
        usage: What it cost.
        model: Model id as the server resolved it, or None.
    """

    specialty: str | None
    definition: str = ""
    source: str = ""
    source_verified: bool = False
    origin: str = "none"
    outcome: Outcome[str] | None = None
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None


Evidence = Mapping[Domain, tuple[Passage, ...]]
