"""A value was read, or it was not: the two are never mixed.

A missing value is never 0, never "safe" and never an empty string. It is kept, counted and shown beside
every mean that leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

T = TypeVar("T")

UnscoredKind = Literal["parse", "truncated", "refused", "infra", "invalid_input"]
"""Why a value is missing: unreadable text, text cut at the token limit, a refusal, a failed call, unusable input."""

RAW_LIMIT: Final = 4000
"""Characters of raw text kept with an unscored outcome: enough to see the fault, bounded for the record file."""


@dataclass(frozen=True, slots=True)
class Scored(Generic[T]):
    """A value that was read from the LM's own words."""

    value: T


@dataclass(frozen=True, slots=True)
class Unscored:
    """A value that could not be had.

    Attributes:
        kind: Which of the five reasons.
        reason: One line for a person, naming the field.
        raw: The LM's text as it came, cut to `RAW_LIMIT` characters; None where no text came back.
    """

    kind: UnscoredKind
    reason: str
    raw: str | None = None

    def __post_init__(self) -> None:
        """Cuts the raw text to its limit."""
        if self.raw is not None and len(self.raw) > RAW_LIMIT:
            object.__setattr__(self, "raw", self.raw[:RAW_LIMIT])


Outcome = Scored[T] | Unscored


class UndeterminedError(TypeError):
    """An undetermined label was used as if it were true or false."""


class Undetermined:
    """A label that is neither risky nor safe. Its truth value is an error, so that `if not risk` cannot pass it."""

    _instance: Undetermined | None = None

    def __new__(cls) -> Undetermined:
        """Returns the one instance."""
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __bool__(self) -> bool:
        """Raises: an undetermined label has no truth value."""
        raise UndeterminedError(
            "this label is undetermined: neither risky nor safe. Test `label is UNDETERMINED`, or read "
            "`needs_review` and the verdict, and send the pair to a person"
        )

    def __repr__(self) -> str:
        """Returns its name."""
        return "UNDETERMINED"

    def __copy__(self) -> Undetermined:
        """Returns itself."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Undetermined:
        """Returns itself."""
        return self

    def __reduce__(self) -> tuple[type[Undetermined], tuple[()]]:
        """Keeps the one instance across processes."""
        return (Undetermined, ())


UNDETERMINED: Final = Undetermined()
