"""How a run ended."""

from __future__ import annotations

from dataclasses import dataclass

from dspy_mama.core.errors import MamaError
from dspy_mama.core.wording import plural


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    Attributes:
        done: Items recorded with at least one outcome that did not fail on infrastructure.
        skipped: Items that were finished before, or stand twice in the data.
        failed: Items recorded as failed on infrastructure; a resumed run tries them again.
        interrupted: Whether a signal ended it before all items were taken.
        seconds: Wall time.
    """

    done: int
    skipped: int
    failed: int
    interrupted: bool
    seconds: float


class TooManyFailuresError(MamaError):
    """Item after item failed on infrastructure: going on would only burn time.

    Attributes:
        result: What was done until then; it is kept.
    """

    def __init__(self, failures: int, last: str, result: RunResult, noun: str = "pair") -> None:
        """Builds the message.

        Args:
            failures: Items that failed in a row.
            last: Error of the last one.
            result: What was done until then.
            noun: What an item is called.
        """
        super().__init__(
            f"{failures} {plural(noun, failures)} failed one after the other (runtime.max_failures_in_row), the last "
            f"with: {last}. What was done is kept: mend the cause and run the same command again"
        )
        self.result = result
