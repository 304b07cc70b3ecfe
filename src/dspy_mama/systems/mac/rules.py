"""Pure rules of a discussion: who is next, when it ends, what counts. No LM."""

from __future__ import annotations

from collections.abc import Sequence

from dspy_mama.core.disease_names import normalise_disease
from dspy_mama.core.outcomes import Unscored
from dspy_mama.systems.mac.schema import SUPERVISOR, Seat, Turn


def speaking_order(seats: Sequence[Seat], supervised: bool) -> tuple[str, ...]:
    """Returns who speaks in turn: the doctors, then the supervisor where there is one."""
    return (*(seat.name for seat in seats), *((SUPERVISOR,) if supervised else ()))


def next_in_order(order: Sequence[str], turns: Sequence[Turn]) -> str:
    """Returns who follows the last speaker; the first at the start."""
    return order[(order.index(turns[-1].speaker) + 1) % len(order)] if turns else order[0]


def is_opening(order: Sequence[str], turns: Sequence[Turn]) -> bool:
    """Tells whether somebody has not had the floor yet; until then everybody speaks in order."""
    return len({turn.speaker for turn in turns}) < len(order)


def supervisor_is_due(order: Sequence[str], turns: Sequence[Turn]) -> bool:
    """Tells whether the supervisor must sum up: as many turns without it as there are doctors.

    Without this rule a chooser that never names the supervisor would leave nobody to say that there is consensus.
    """
    last = turns[-(len(order) - 1) :]
    return SUPERVISOR in order and len(last) == len(order) - 1 and all(turn.role == "doctor" for turn in last)


def round_of(number: int, order: Sequence[str], unit: str) -> int:
    """Returns the round of the n-th turn: every turn is one, or every pass through the order.

    Args:
        number: Number of the turn, from 1.
        order: Who speaks in turn.
        unit: `turn` or `pass`.
    """
    return number if unit == "turn" else (number - 1) // len(order) + 1


def turn_limit(rounds: int, order: Sequence[str], unit: str) -> int:
    """Returns how many turns so many rounds may have."""
    return rounds if unit == "turn" else rounds * len(order)


def latest_by_doctor(turns: Sequence[Turn]) -> dict[str, Turn]:
    """Returns each doctor's latest turn."""
    return {turn.speaker: turn for turn in turns if turn.role == "doctor"}


def consensus_counts(turns: Sequence[Turn], seats: Sequence[Seat]) -> bool:
    """Tells whether a supervisor's consensus may end the discussion.

    Every doctor must have had the floor, and at least two must have been readable: nobody agrees alone.
    """
    latest = latest_by_doctor(turns)
    return len(latest) == len(seats) and sum(turn.readable for turn in latest.values()) >= 2


def doctors_agree(turns: Sequence[Turn], seats: Sequence[Seat]) -> bool:
    """Tells whether the doctors end a discussion without a supervisor.

    Every doctor's latest turn was readable and agrees by its typed flag. The first turn of all has nothing to agree
    with, so its speaker must speak again.
    """
    latest = latest_by_doctor(turns)
    return len(latest) == len(seats) and all(
        turn.readable and turn.agrees is True and turn.number > 1 for turn in latest.values()
    )


def nothing_readable(turns: Sequence[Turn], seats: Sequence[Seat]) -> bool:
    """Tells whether as many doctors' turns in a row as there are doctors could not be read."""
    last = [turn for turn in turns if turn.role == "doctor"][-len(seats) :]
    return len(last) == len(seats) and not any(turn.readable for turn in last)


def why_unreadable(turns: Sequence[Turn], seats: Sequence[Seat]) -> Unscored:
    """Returns the outcome of a discussion that ended because nothing could be read any more.

    It is `infra`, so that a resumed run tries again, only where all of the doctors' last turns were.
    """
    last = [turn for turn in turns if turn.role == "doctor"][-len(seats) :]
    missing = [turn.outcome for turn in last if isinstance(turn.outcome, Unscored)]
    told = [outcome for outcome in missing if outcome.kind != "infra"]
    first = (told or missing)[0]
    return Unscored(
        first.kind, f"{len(missing)} doctors' turns in a row could not be read, such as: {first.reason}", first.raw
    )


def others(names: Sequence[str], most_likely: str | None) -> tuple[str, ...]:
    """Returns diagnoses without the most likely one, each once under its normal spelling."""
    taken = {normalise_disease(most_likely or "")}
    kept = []
    for name in names:
        form = normalise_disease(name)
        if form not in taken:
            taken.add(form)
            kept.append(name)
    return tuple(kept)
