"""How far a run is, on stderr: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, Final, Protocol

from dspy_mama.core.wording import plural
from dspy_mama.tracking import final_outcomes

_LINE_EVERY_SHARE: Final = 0.1
_LINE_EVERY_SECONDS: Final = 30.0


@dataclass
class Tally:
    """What is known about a run so far.

    Attributes:
        total: Items of the run, or None where it is not known beforehand.
        noun: What an item is called.
        done: Items done now, failed ones among them.
        skipped: Items that were finished before.
        unscored: Final outcomes without a value.
        cost: Money spent so far as far as it is known.
        cost_unknown: Whether some calls had no known price.
    """

    total: int | None = None
    noun: str = "pair"
    done: int = 0
    skipped: int = 0
    unscored: int = 0
    cost: float = 0.0
    cost_unknown: bool = False
    started: float = field(default_factory=time.monotonic)

    def add(self, record: Mapping[str, Any]) -> None:
        """Counts a finished record."""
        self.done += 1
        self.unscored += sum(outcome != "scored" for outcome in final_outcomes(record).values())
        for usage in (record.get("usage") or {}).values():
            if usage and usage.get("calls"):
                cost = usage.get("cost")
                self.cost_unknown |= cost is None
                self.cost += cost or 0.0

    def describe(self, now: float | None = None) -> str:
        """Returns rate, time left, cost and unscored count in one line.

        Args:
            now: Monotonic time in seconds; None = now.
        """
        seconds = max((time.monotonic() if now is None else now) - self.started, 1e-9)
        rate = self.done / seconds
        parts = [f"{f'{rate * 60:.1f}' if self.done else '-'} {plural(self.noun)}/min"]
        if self.total is not None and self.done:
            parts.append(f"{_duration((self.total - self.done - self.skipped) / rate)} left")
        parts.append(self._cost())
        parts.append(f"{self.unscored} unscored")
        return ", ".join(parts)

    def _cost(self) -> str:
        if not self.cost_unknown:
            return f"cost {self.cost:.4f}"
        return f"cost {self.cost:.4f} + unknown" if self.cost else "cost unknown"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Progress(Protocol):
    """Watches a run; called from the event loop's thread only."""

    def start(self, total: int | None) -> None:
        """Begins; `total` is None where the number of items is not known."""

    def skip(self) -> None:
        """An item was finished before."""

    def add(self, record: Mapping[str, Any]) -> None:
        """A record was written."""

    def say(self, message: str) -> None:
        """Tells the user something that must be seen."""

    def close(self) -> None:
        """Ends."""


class LineProgress:
    """Writes a line about every tenth of a run or every 30 seconds; with `quiet`, messages alone."""

    def __init__(
        self,
        stream: IO[str] | None = None,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
        words: tuple[str, str] = ("audited", "pair"),
    ) -> None:
        """Takes where to write (None = stderr), a monotonic clock in seconds, and what is done to what."""
        self._verb, self._noun = words
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._clock = clock
        self._tally = Tally()
        self._line_at = (0, 0.0)

    def start(self, total: int | None) -> None:
        """Begins."""
        now = self._clock()
        self._tally = Tally(total=total, noun=self._noun, started=now)
        self._line_at = (0, now)

    def skip(self) -> None:
        """An item was finished before."""
        self._tally.skipped += 1

    def add(self, record: Mapping[str, Any]) -> None:
        """Counts a record and writes a line if one is due."""
        self._tally.add(record)
        now, (done, moment) = self._clock(), self._line_at
        share = (self._tally.total or 0) * _LINE_EVERY_SHARE
        if now - moment >= _LINE_EVERY_SECONDS or (share and self._tally.done - done >= share):
            self._line_at = (self._tally.done, now)
            self._line()

    def say(self, message: str) -> None:
        """Writes the message, if anyone still listens."""
        with suppress(OSError, ValueError):  # `mama ... 2>&1 | head` closes the pipe; the run goes on
            self._stream.write(f"{message}\n")
            self._stream.flush()

    def close(self) -> None:
        """Writes the last line if something came after the last one."""
        if self._tally.done > self._line_at[0]:
            self._line()

    def _line(self) -> None:
        if not self._quiet:
            position = self._tally.done + self._tally.skipped
            of = f"/{self._tally.total}" if self._tally.total is not None else ""
            self.say(f"{self._verb} {position}{of}: {self._tally.describe(self._clock())}")


class BarProgress:
    """Draws a bar with rate, time left, cost and unscored count."""

    def __init__(self, stream: IO[str] | None = None, words: tuple[str, str] = ("audited", "pair")) -> None:
        """Takes the terminal to draw on (None = stderr), and what is done to what."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn(words[0]), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[facts]}"))
        self._bar = Bar(*columns, console=Console(file=stream or sys.stderr))
        self._noun = words[1]
        self._tally = Tally(noun=self._noun)
        self._task = self._bar.add_task(words[0], total=None, facts="", start=False)

    def start(self, total: int | None) -> None:
        """Begins to draw."""
        self._tally = Tally(total=total, noun=self._noun)
        self._bar.update(self._task, total=total)
        self._bar.start_task(self._task)
        self._bar.start()

    def skip(self) -> None:
        """Moves the bar on."""
        self._tally.skipped += 1
        self._bar.advance(self._task)

    def add(self, record: Mapping[str, Any]) -> None:
        """Counts a record and moves the bar on."""
        self._tally.add(record)
        self._bar.update(self._task, advance=1, facts=self._tally.describe())

    def say(self, message: str) -> None:
        """Writes the message above the bar."""
        self._bar.console.print(message, markup=False, highlight=False)

    def close(self) -> None:
        """Leaves the last state on the terminal."""
        self._bar.stop()


def make_progress(
    wanted: bool, stream: IO[str] | None = None, words: tuple[str, str] = ("audited", "pair")
) -> Progress:
    """Returns what fits the stream: a bar on a terminal, lines elsewhere, messages alone where it is not wanted.

    Args:
        wanted: `runtime.progress`.
        stream: Where to write; None = stderr.
        words: What is done to what, such as `("audited", "pair")`.
    """
    target = stream or sys.stderr
    if wanted and target.isatty():
        return BarProgress(target, words)
    return LineProgress(target, quiet=not wanted, words=words)
