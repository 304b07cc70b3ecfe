"""What a discussion is made of: seats, turns, cuts, and the diagnosis that comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.core.patient_case import Stage
from dspy_mama.lm.usage import CallUsage
from dspy_mama.scoring.standing import Standing
from dspy_mama.settings.panel import PanelRole

SUPERVISOR = "Supervisor"

Stopped = Literal["consensus", "rounds", "unreadable"]


@dataclass(frozen=True, slots=True)
class Seat:
    """A doctor's place on the panel.

    Attributes:
        name: `Doctor 1` and so on; the same in every case, so that a reply can name it.
        specialty: Specialty for this case, or None.
    """

    name: str
    specialty: str | None = None

    @property
    def title(self) -> str:
        """Name with the specialty, as the discussion shows it."""
        return f"{self.name} ({self.specialty})" if self.specialty else self.name


@dataclass(frozen=True, slots=True)
class Selection:
    """How a speaker got the floor.

    Attributes:
        speaker: Who it is.
        by: `order` (opening, or round robin), `supervisor` (who named the next), `speaker` (an LM chose), `fallback`
            (the choice could not be read or does not exist: the next in order).
        asked: What was chosen, also where it was no use; None where nobody was asked.
        outcome: Outcome of the choosing; None where nobody was asked.
        usage: What the choosing cost, where it was a call of its own.
        model: Model that chose, where it was a call of its own.
    """

    speaker: str
    by: Literal["order", "supervisor", "speaker", "fallback"] = "order"
    asked: str | None = None
    outcome: Outcome[str] | None = None
    usage: CallUsage | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker said.

    Attributes:
        number: From 1.
        round: Round in which it was said, from 1.
        speaker: `Doctor N` or `Supervisor`.
        role: `doctor` or `supervisor`.
        outcome: The most likely diagnosis, or why the turn could not be read.
        specialty: The doctor's, or None.
        argument: A doctor's reasons and answers to the others.
        disagreement: What the supervisor sees open.
        differentials: Other diagnoses that remain possible.
        tests: Further tests; empty in the follow-up.
        agrees: A doctor's typed flag: the same diagnosis as the others; None where it could not be read.
        consensus: The supervisor's typed flag; None where it could not be read.
        accepted: Whether the flag ended the discussion; None for doctors.
        next_speaker: Doctor that the supervisor named; None where there is none.
        selection: How the speaker got the floor.
        usage: What the turn cost, without the selection.
        model: Model id as the server resolved it, or None where no reply came.
    """

    number: int
    round: int
    speaker: str
    role: Literal["doctor", "supervisor"]
    outcome: Outcome[str]
    specialty: str | None = None
    argument: str | None = None
    disagreement: str | None = None
    differentials: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    agrees: bool | None = None
    consensus: bool | None = None
    accepted: bool | None = None
    next_speaker: str | None = None
    selection: Selection | None = None
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None

    @property
    def readable(self) -> bool:
        """Whether the turn could be read."""
        return isinstance(self.outcome, Scored)

    @property
    def most_likely(self) -> str | None:
        """The diagnosis, or None where the turn could not be read."""
        return self.outcome.value if isinstance(self.outcome, Scored) else None


@dataclass(frozen=True, slots=True)
class Cut:
    """What a prompt had to leave out.

    Attributes:
        round: Round of the prompt.
        role: Whose prompt it was.
        left_out: Earlier turns that are not shown.
        case_characters: Characters of the case's end that are not shown.
        tokens: Estimated tokens of case and discussion as shown.
        limit: The limit in force.
    """

    round: int
    role: PanelRole
    left_out: int
    case_characters: int
    tokens: int
    limit: int


@dataclass(frozen=True, slots=True)
class SpecialtyChoice:
    """Which specialties sit on the panel, and how they were chosen.

    Attributes:
        chosen: One a doctor, in their order.
        asked: Names as the consultant gave them; empty where they were fixed.
        dropped: Names that were no use, each with the reason.
        filled: Specialties taken from the list in place of missing ones.
        outcome: `Scored`, or why the reply could not be read; None where nobody was asked.
        usage: What the choice cost.
        model: Model that chose, or None.
    """

    chosen: tuple[str, ...]
    asked: tuple[str, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    filled: tuple[str, ...] = ()
    outcome: Outcome[tuple[str, ...]] | None = None
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Discussion:
    """A discussion so far; every turn makes a new one.

    Attributes:
        turns: In order.
        cuts: What prompts had to leave out.
        stopped: Why it ended; None while it goes on.
    """

    turns: tuple[Turn, ...] = ()
    cuts: tuple[Cut, ...] = ()
    stopped: Stopped | None = None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A diagnosis with its company.

    Attributes:
        outcome: The most likely diagnosis, or why there is none.
        by: Who gave it; None where nobody could.
        possible: Other possible diagnoses, without the most likely one.
        tests: Further tests; empty in the follow-up.
        argument: Which argument decided, in the concluder's words; None where it was not asked.
        usage: What it cost; nothing where it was the supervisor's turn.
        model: Model that gave it, or None.
    """

    outcome: Outcome[str]
    by: Literal["supervisor", "concluder", "answer", "vote", "refined"] | None = None
    possible: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    argument: str | None = None
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that a method found on one case at one stage.

    Attributes:
        method: `mac`, or the name of a baseline.
        stage: Stage of the case.
        conclusion: The result.
        discussion: The panel's discussion; empty for baselines.
        attempts: What a baseline considered, as records; empty for the panel.
        specialties: Specialties of the panel, or None.
        panel: Facts of the panel (doctors, supervisor, specialties, speaker, rounds, round); None for baselines.
        usage: What was spent by role.
        usage_by_doctor: What each doctor's turns cost.
        models: Model by role, as the server resolved it.
        notes: What did not go as planned, one line each.
        standing: The doctors' latest diagnoses beside what was declared of them; None for baselines.
    """

    method: str
    stage: Stage
    conclusion: Conclusion
    discussion: Discussion = field(default_factory=Discussion)
    attempts: tuple[Mapping[str, Any], ...] = ()
    specialties: SpecialtyChoice | None = None
    panel: Mapping[str, Any] | None = None
    usage: Mapping[str, CallUsage] = field(default_factory=dict)
    usage_by_doctor: Mapping[str, CallUsage] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    standing: Standing | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What in the discussion speaks against its consensus or outcome, one line each."""
        return self.standing.warnings if self.standing else ()

    @property
    def rounds(self) -> int:
        """Rounds begun."""
        return self.discussion.turns[-1].round if self.discussion.turns else 0

    @property
    def consensus_round(self) -> int | None:
        """Round of the consensus that ended the discussion, or None."""
        return self.discussion.turns[-1].round if self.discussion.stopped == "consensus" else None


def outcome_name(outcome: Outcome[Any]) -> str:
    """Returns `scored`, or the kind of what is missing."""
    return outcome.kind if isinstance(outcome, Unscored) else "scored"
