"""What compiling may spend, held at every LM call: the call after the last allowed one is not made."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import Any, Final

from dspy_mama.settings import BudgetSettings

UNITS: Final = ("calls", "tokens", "cost", "minutes")


class BudgetSpentError(Exception):
    """A call was not made because the budget is spent."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent.

    Attributes:
        calls: Calls that reached an LM, those of earlier starts of the same compilation among them.
        tokens: Tokens sent and received, as far as they are known.
        cost: Dollars, as far as they are known.
        minutes: Minutes since the start.
        unknown_tokens: Calls whose tokens nobody told; a token budget counts them by characters.
        unknown_cost: Calls without a known price.
        from_journal: Calls that an earlier start had paid for.
    """

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    minutes: float = 0.0
    unknown_tokens: int = 0
    unknown_cost: int = 0
    from_journal: int = 0

    def __add__(self, other: Spent) -> Spent:
        """Returns both together."""
        return Spent(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures as plain data; money is null where a price is unknown, which is not 0."""
        return {
            "calls": self.calls,
            "tokens": self.tokens,
            "tokens_estimated_calls": self.unknown_tokens,
            "cost": None if self.unknown_cost else round(self.cost, 6),
            "minutes": round(self.minutes, 3),
            "from_journal": self.from_journal,
        }


class Budget:
    """Limits shared by every LM of a compilation, over all threads and event loops.

    Attributes:
        stopped: The first limit that stopped something, in words, or None.
        refused: Calls that were not made.
        broken: Why no call can be answered any more, such as a refused key, or None.
    """

    def __init__(self, limits: BudgetSettings | None = None) -> None:
        """Starts the clock.

        Args:
            limits: What may be spent in all; minutes are those of this start.
        """
        self.limits = limits or BudgetSettings()
        self._lock = threading.Lock()
        self._spent = Spent()
        self._began = time.monotonic()
        self._reserved: dict[str, float] = {}
        self._held = False
        self.stopped: str | None = None
        self.refused = 0
        self.broken: str | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        """Returns itself: copies of an LM spend from one budget."""
        return self

    @property
    def spent(self) -> Spent:
        """What was spent so far."""
        with self._lock:
            return self._now()

    def _now(self) -> Spent:
        return replace(self._spent, minutes=(time.monotonic() - self._began) / 60)

    def reserve(self, **amounts: float) -> None:
        """Keeps amounts back from the search, for the measuring that comes after it.

        Args:
            **amounts: By unit: `calls`, `tokens`, `cost`, `minutes`.
        """
        with self._lock:
            self._reserved, self._held = dict(amounts), True

    def release(self) -> None:
        """Frees what was kept back."""
        with self._lock:
            self._held = False

    def exhausted(self) -> str | None:
        """Returns which limit is reached, in words, or None."""
        with self._lock:
            return self._exhausted()

    def halt(self) -> str | None:
        """Returns which limit is reached, as `exhausted`, and notes that something stops for it."""
        with self._lock:
            why = self._exhausted()
            self.stopped = self.stopped or why
            return why

    def affords(self, **amounts: float) -> bool:
        """Tells whether so much may still be spent, nothing being kept back.

        Args:
            **amounts: By unit, as in `reserve`.
        """
        now = self.spent
        limits = {unit: getattr(self.limits, unit) for unit in amounts}
        return all(
            limits[unit] is None or getattr(now, unit) + amount <= limits[unit] for unit, amount in amounts.items()
        )

    def _exhausted(self) -> str | None:
        now = self._now()
        for unit in UNITS:
            limit = getattr(self.limits, unit)
            if limit is None:
                continue
            kept = self._reserved.get(unit, 0) if self._held else 0
            if getattr(now, unit) >= limit - kept:
                amount = f"{limit:g} {'US dollars' if unit == 'cost' else unit}"
                if kept >= limit:
                    return f"the budget of {amount} leaves nothing for a search: measuring takes {kept:.4g}"
                back = f" ({kept:.4g} of them kept back for measuring)" if kept else ""
                return f"the budget of {amount} is spent{back}"
        return None

    def admit(self) -> None:
        """Counts a call that is about to be made.

        Raises:
            BudgetSpentError: A limit is reached, or no call can be answered any more.
        """
        with self._lock:
            if self.broken is not None:
                raise BudgetSpentError(self.broken)
            if why := self._exhausted():
                self.stopped = self.stopped or why
                self.refused += 1
                raise BudgetSpentError(why)
            self._spent = replace(self._spent, calls=self._spent.calls + 1)

    def charge(self, tokens: int | None, cost: float | None, estimate: int = 0) -> None:
        """Adds what an answered call cost.

        Args:
            tokens: Tokens sent and received; None = not told.
            cost: Dollars; None = unknown.
            estimate: Tokens to count where they were not told.
        """
        with self._lock:
            now = self._spent
            self._spent = replace(
                now,
                tokens=now.tokens + (estimate if tokens is None else tokens),
                unknown_tokens=now.unknown_tokens + (tokens is None),
                cost=now.cost + (cost or 0.0),
                unknown_cost=now.unknown_cost + (cost is None),
            )

    def recall(self, earlier: tuple[int | None, float | None, int] | None = None) -> None:
        """Counts a call that the journal answered.

        Args:
            earlier: What the call cost an earlier start, where it is met again for the first time: it counts as it
                did then, so that a run which goes on has the same budget as one that was never cut short.
        """
        with self._lock:
            calls = self._spent.calls + (earlier is not None)
            self._spent = replace(self._spent, from_journal=self._spent.from_journal + 1, calls=calls)
        if earlier is not None:
            self.charge(*earlier)
