"""What a plan would cost, before the first token: calls, tokens and money, expected and at most.

What is unknown stays unknown and is never 0: a model without a known price has no cost, and neither has a sum with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dspy_mama.lm.predict import REASK_FACTOR
from dspy_mama.optimize.estimate_dry import PredictorCost

_REASKED: Final = 2
"""A reply that cannot be read is asked for once more."""
_REASK_TOKENS: Final = 1400
"""The re-ask repeats the prompt, then shows the reply (4,000 characters at most) and names each field."""


@dataclass(frozen=True, slots=True)
class Range:
    """What is expected, and what cannot be passed; None = unknown."""

    expected: float | None
    most: float | None

    def __add__(self, other: Range) -> Range:
        """Returns the sum; unknown plus known is unknown."""
        return Range(_sum((self.expected, other.expected)), _sum((self.most, other.most)))


def _sum(values: Iterable[float | None]) -> float | None:
    kept = list(values)
    known = [value for value in kept if value is not None]
    return sum(known) if len(known) == len(kept) else None


@dataclass(frozen=True, slots=True)
class OtherCalls:
    """Calls of a step that are no run of the program, such as those of a reflecting LM.

    Attributes:
        role: Role whose LM answers.
        model: Model id, or None where none is set.
        calls: Expected calls.
        calls_most: Calls at most.
        prompt: Tokens of a prompt, expected; None = unknown.
        prompt_most: Tokens of a prompt at most; None = unknown.
        reply: Tokens of a reply at most; None = no limit is set.
        price: Dollars per prompt token and per new token; None = unknown.
    """

    role: str
    model: str | None
    calls: int
    calls_most: int
    prompt: int | None
    prompt_most: int | None
    reply: int | None
    price: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan.

    Attributes:
        name: What is done.
        runs: Runs of the program, expected.
        runs_most: Runs at most.
        demos: Demonstrations per prompt at most.
        others: Calls besides.
        by: What a run costs where another program runs, such as a teacher; None = the program itself.
    """

    name: str
    runs: int
    runs_most: int
    demos: int = 0
    others: tuple[OtherCalls, ...] = ()
    by: tuple[PredictorCost, ...] | None = None


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """Cost of one role in one step: calls, prompt tokens, new tokens, and dollars."""

    step: str
    role: str
    model: str | None
    calls: Range
    prompt_tokens: Range
    new_tokens: Range
    cost: Range


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost of a plan.

    Attributes:
        rows: Per step and role.
        limits: What stops the plan earlier: `calls`, `tokens`, `cost` (dollars), `minutes`; only those that are set.
    """

    rows: tuple[EstimateRow, ...]
    limits: Mapping[str, float]

    @property
    def calls(self) -> Range:
        """Calls of the whole plan; a limit holds from above."""
        return self._total("calls", self.limits.get("calls"))

    @property
    def tokens(self) -> Range:
        """Tokens of the whole plan, sent and received."""
        both = self._total("prompt_tokens", None) + self._total("new_tokens", None)
        return _capped(both, self.limits.get("tokens"))

    @property
    def cost(self) -> Range:
        """Dollars of the whole plan; None = some price is unknown."""
        return self._total("cost", self.limits.get("cost"))

    def _total(self, name: str, limit: float | None) -> Range:
        total = Range(0, 0)
        for row in self.rows:
            total = total + getattr(row, name)
        return _capped(total, limit)

    def to_dict(self) -> dict[str, Any]:
        """Returns the estimate as plain data; null = unknown."""
        columns = ("calls", "prompt_tokens", "new_tokens", "cost")
        rows = [
            {"step": row.step, "role": row.role, "model": row.model}
            | {column: _plain(getattr(row, column)) for column in columns}
            for row in self.rows
        ]
        totals = {"calls": _plain(self.calls), "tokens": _plain(self.tokens), "cost": _plain(self.cost)}
        return {"rows": rows, "total": totals, "limits": dict(self.limits)}


def _plain(value: Range) -> dict[str, float | None]:
    return {"expected": value.expected, "at_most": value.most}


def _capped(value: Range, limit: float | None) -> Range:
    if limit is None:
        return value
    expected = None if value.expected is None else min(value.expected, limit)
    return Range(expected, limit if value.most is None else min(value.most, limit))


def estimate_plan(
    steps: Sequence[PlanStep], program: Sequence[PredictorCost], limits: Mapping[str, float | None] | None = None
) -> Estimate:
    """Estimates what a plan costs.

    Args:
        steps: What is done.
        program: What a run of the program costs (`measure_program`).
        limits: Budgets that stop the plan: `calls`, `tokens`, `cost`, `minutes`; None = none.
    """
    rows: list[EstimateRow] = []
    for step in steps:
        if step.runs_most:
            rows += _run_rows(step, program if step.by is None else step.by)
        rows += [_other_row(step.name, other) for other in step.others if other.calls_most]
    return Estimate(tuple(rows), {name: float(limit) for name, limit in (limits or {}).items() if limit is not None})


def _run_rows(step: PlanStep, program: Sequence[PredictorCost]) -> list[EstimateRow]:
    roles = dict.fromkeys((cost.role, cost.model) for cost in program)
    rows = []
    for role, model in roles:
        parts = [_run_row(step, cost) for cost in program if (cost.role, cost.model) == (role, model)]
        row = parts[0]
        for part in parts[1:]:
            row = EstimateRow(
                step.name, role, model, row.calls + part.calls, row.prompt_tokens + part.prompt_tokens,
                row.new_tokens + part.new_tokens, row.cost + part.cost,
            )  # fmt: skip
        rows.append(row)
    return rows


def _run_row(step: PlanStep, cost: PredictorCost) -> EstimateRow:
    """Returns what one predictor costs in a step.

    Expected are replies as long as their fields allow and half of the demonstrations; at most, every reply is asked
    for twice, and every prompt holds all demonstrations.
    """
    calls, calls_most = step.runs * cost.calls, step.runs_most * cost.calls
    long = cost.prompt(step.demos, most=True)
    prompt = Range(calls * cost.prompt((step.demos + 1) // 2), calls_most * (_REASKED * long + _REASK_TOKENS))
    cut = None if cost.reply_most is None else cost.reply_most * (1 + REASK_FACTOR)
    new = Range(calls * cost.reply, None if cut is None else calls_most * cut)
    made = Range(calls, calls_most * _REASKED)
    return EstimateRow(step.name, cost.role, cost.model, made, prompt, new, _money(prompt, new, cost.price))


def _other_row(step: str, other: OtherCalls) -> EstimateRow:
    def times(calls: int, tokens: int | None) -> float | None:
        return None if tokens is None else calls * tokens

    prompt = Range(times(other.calls, other.prompt), times(other.calls_most, other.prompt_most))
    new = Range(times(other.calls, other.reply), times(other.calls_most, other.reply))
    calls = Range(other.calls, other.calls_most)
    return EstimateRow(step, other.role, other.model, calls, prompt, new, _money(prompt, new, other.price))


def _money(prompt: Range, new: Range, price: tuple[float, float] | None) -> Range:
    if price is None:
        return Range(None, None)

    def paid(sent: float | None, received: float | None) -> float | None:
        return None if sent is None or received is None else sent * price[0] + received * price[1]

    return Range(paid(prompt.expected, new.expected), paid(prompt.most, new.most))


def estimate_table(estimate: Estimate) -> str:
    """Returns an estimate as a table for a terminal."""
    head = ("step", "role", "model", "calls", "at most", "tokens", "at most", "US$", "at most")
    body = []
    for row in estimate.rows:
        tokens = row.prompt_tokens + row.new_tokens
        body.append((row.step, row.role, row.model or "none set", *_cells(row.calls, tokens, row.cost)))
    body.append(("total", "", "", *_cells(estimate.calls, estimate.tokens, estimate.cost)))
    widths = [max(len(line[column]) for line in (head, *body)) for column in range(len(head))]
    lines = [_line(line, widths) for line in (head, *body)]
    if estimate.limits:
        named = ", ".join(f"{limit:g} {name}" for name, limit in estimate.limits.items())
        lines.append(f"the budget stops it at {named}")
    lines.append("tokens are estimated from characters; unknown = no price or no token limit is known, it is not 0")
    return "\n".join(lines) + "\n"


def _cells(calls: Range, tokens: Range, cost: Range) -> tuple[str, ...]:
    counted = [_count(value) for value in (calls.expected, calls.most, tokens.expected, tokens.most)]
    return (*counted, *("unknown" if value is None else f"{value:.2f}" for value in (cost.expected, cost.most)))


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    left = [cell.ljust(width) for cell, width in zip(cells[:3], widths[:3], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(cells[3:], widths[3:], strict=True)]
    return "  ".join([*left, *right]).rstrip()
