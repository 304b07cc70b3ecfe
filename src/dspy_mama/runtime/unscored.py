"""Whether so many verdicts are missing that a run's numbers must not be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dspy_mama.tracking import final_outcomes


@dataclass(frozen=True, slots=True)
class UnscoredRate:
    """Share of final verdicts that could not be read.

    Attributes:
        verdicts: Final verdicts over all records and domains.
        unscored: Those without a value.
        kinds: How many of each kind (`parse`, `truncated`, `refused`, `infra`, `invalid_input`).
        limit: Share that is allowed, in [0, 1].
        noun: What is counted, in the plural.
    """

    verdicts: int
    unscored: int
    kinds: Mapping[str, int]
    limit: float
    noun: str = "verdicts"

    @property
    def rate(self) -> float | None:
        """Unscored over all verdicts; None where there are no verdicts."""
        return self.unscored / self.verdicts if self.verdicts else None

    @property
    def exceeded(self) -> bool:
        """Whether the run must fail: over the limit, or nothing was judged at all."""
        return self.rate is None or self.rate > self.limit

    def __str__(self) -> str:
        """Returns one line for a person."""
        if self.rate is None:
            return "no outcomes at all: nothing was done"
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        detail = f" ({kinds})" if kinds else ""
        relation = "over" if self.exceeded else "within"
        return (
            f"{self.unscored} of {self.verdicts} final {self.noun} unscored{detail}: {self.rate:.1%}, {relation} "
            f"runtime.max_unscored_rate={self.limit:g}"
        )


def check_unscored(records: Iterable[Mapping[str, Any]], max_rate: float, noun: str = "verdicts") -> UnscoredRate:
    """Counts the final verdicts without a value; `exceeded` means exit code 3.

    Args:
        records: Records of a run.
        max_rate: Share that may be unscored, in [0, 1].
        noun: What is counted, in the plural.

    Raises:
        DeclarationError: A record has no verdicts of its final phase.
    """
    outcomes = Counter(outcome for record in records for outcome in final_outcomes(record).values())
    kinds = {kind: count for kind, count in outcomes.items() if kind != "scored"}
    return UnscoredRate(outcomes.total(), sum(kinds.values()), kinds, max_rate, noun)
