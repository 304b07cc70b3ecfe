"""A discussion as a prompt shows it, and the rule by which it is cut to what a model can take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dspy_mama.core.outcomes import Unscored
from dspy_mama.settings.panel import PanelRole
from dspy_mama.systems.mac.schema import Cut, Seat, Turn

CHARACTERS_PER_TOKEN: Final = 3.5
"""ASCII characters per token: fewer than the 4 or so of English prose, for names of diseases are cut into more."""

NOBODY_YET: Final = "Nobody has spoken yet."
_SMALLEST_CASE: Final = 200
"""Characters of a case that are shown in any event."""


def approximate_tokens(text: str) -> int:
    """Returns an estimate of a text's tokens: 3.5 ASCII characters each, and one for every other character."""
    ascii_signs = sum(sign.isascii() for sign in text)
    return math.ceil(ascii_signs / CHARACTERS_PER_TOKEN + len(text) - ascii_signs)


def _line(text: str) -> str:
    """Returns a text in one line: a quotation in it cannot pass for another speaker's turn."""
    return " ".join(text.split())


def turn_line(turn: Turn) -> str:
    """Returns a turn as the discussion shows it: one line, speaker first."""
    title = Seat(turn.speaker, turn.specialty).title
    if isinstance(turn.outcome, Unscored):
        return f"{title}: (this turn could not be read)"
    parts = [turn.argument or "", turn.disagreement and f"Still open: {turn.disagreement}"]
    parts.append(f"Most likely: {turn.most_likely}.")
    parts.append(f"Also possible: {'; '.join(turn.differentials)}." if turn.differentials else "")
    parts.append(f"Tests: {'; '.join(turn.tests)}." if turn.tests else "")
    return _line(f"{title}: " + " ".join(part for part in parts if part))


@dataclass(frozen=True, slots=True)
class Shown:
    """Case and discussion as one prompt shows them.

    Attributes:
        case: The case's text.
        discussion: One turn a line.
        left_out: Earlier turns that are not shown.
        case_characters: Characters of the case's end that are not shown.
        tokens: Estimated tokens of both.
    """

    case: str
    discussion: str
    left_out: int
    case_characters: int
    tokens: int

    def cut(self, round_number: int, role: PanelRole, limit: int) -> Cut | None:
        """Returns what is left out, as the record keeps it; None where nothing is."""
        if not (self.left_out or self.case_characters):
            return None
        return Cut(round_number, role, self.left_out, self.case_characters, self.tokens, limit)


def cut_to(case: str, turns: Sequence[Turn], limit: int) -> Shown:
    """Cuts case and discussion to a number of tokens.

    The rule: the case and the latest turn are kept; then as many turns before it as fit, latest first. A line at
    the head of the discussion says how many are left out. Only where case and latest turn together do not fit is the
    end of the case left out (never its first 200 characters), and a line says how much.

    Args:
        case: Text of the case.
        turns: The discussion, in order.
        limit: Tokens by `approximate_tokens`.
    """
    lines = [turn_line(turn) for turn in turns]
    latest = lines[-1] if lines else NOBODY_YET
    shown_case, dropped = _cut_case(case, limit - approximate_tokens(latest) - _spare(len(lines)))
    room = limit - approximate_tokens(shown_case) - approximate_tokens(latest) - _spare(len(lines))
    kept = [latest]
    for line in reversed(lines[:-1]):
        room -= approximate_tokens(line + "\n")
        if room < 0:
            break
        kept.insert(0, line)
    left_out = max(len(lines) - len(kept), 0)
    head = [f"({left_out} earlier turn(s) left out for length)"] if left_out else []
    discussion = "\n".join([*head, *kept])
    tokens = approximate_tokens(shown_case) + approximate_tokens(discussion)
    return Shown(shown_case, discussion, left_out, dropped, tokens)


def _spare(turns: int) -> int:
    """Returns tokens kept free for the line that says what was left out."""
    return 15 if turns > 1 else 0


def _cut_case(case: str, room: int) -> tuple[str, int]:
    if approximate_tokens(case) <= room:
        return case, 0
    low, high = min(_SMALLEST_CASE, len(case)), len(case)
    while low < high:  # the longest beginning that fits with the line that says so
        middle = (low + high + 1) // 2
        if approximate_tokens(_with_mark(case, middle)) <= room:
            low = middle
        else:
            high = middle - 1
    return _with_mark(case, low), len(case) - low


def _with_mark(case: str, length: int) -> str:
    missing = len(case) - length
    return f"{case[:length]}\n(the case goes on for {missing} characters, left out for length)" if missing else case
