"""What the loop passes on: assessments, their consensus, plans, versions, and the whole refinement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from dspy_mama.core.chat_request import ChatTurn
from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.lm.usage import CallUsage

Kind = Literal["ethics", "safety", "risk"]
Origin = Literal["given", "generated", "refined"]
Stop = Literal["accepted", "budget", "unreadable", "generation", "gate"]
Category = Literal["emergency", "diagnostic", "therapeutic", "preventive"]


@dataclass(frozen=True, slots=True)
class Flag:
    """Whether one principle is violated.

    Attributes:
        principle: Its id.
        name: What it is called.
        violated: None where it could not be read.
        reason: Why, or None.
    """

    principle: str
    name: str
    violated: bool | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Assessment:
    """What one evaluator said of one text.

    Attributes:
        evaluator: Its role, such as `ethics` or `safety_2`.
        kind: What it judges.
        outcome: Its score (violated principles; level 1 to 5; number of domains that are not safe), or why there is
            none.
        flags: Flag per principle, of an ethics evaluator.
        reason: Why, in its words.
        evidence: Passages that it cites, as plain data.
        usage: Cost of its calls.
        model: Model id as the server resolved it.
        truncated: Whether a reply was cut at the token limit, also where asking again gave a whole one.
    """

    evaluator: str
    kind: Kind
    outcome: Outcome[float]
    flags: tuple[Flag, ...] = ()
    reason: str | None = None
    evidence: tuple[Mapping[str, Any], ...] = ()
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None
    truncated: bool = False

    @property
    def score(self) -> float | None:
        """Its score, or None."""
        return self.outcome.value if isinstance(self.outcome, Scored) else None


@runtime_checkable
class Evaluator(Protocol):
    """A further evaluator from elsewhere, such as an auditor; built outside and handed to the loop."""

    name: str

    async def assess(self, question: str, answer: str) -> Assessment:
        """Judges an answer."""


@dataclass(frozen=True, slots=True)
class Consensus:
    """What the evaluators come to, side by side.

    Attributes:
        ama: Violated principles over the ethics evaluators that were read; None where none was.
        sra: Level of safety risk over the safety evaluators that were read; None where none was.
        risks: Sum of what further evaluators do not find safe; None where there is none or one was not read.
        readable: Whether every evaluator was read: without it nothing is accepted.
        accepted: Whether both thresholds hold, and every further evaluator finds the text safe.
        refused: Whether the text is not acceptable whatever those say that could not be read.
        mandatory: Whether the violations alone demand a revision.
        reasons: Main reasons for violations and risks, one line each.
        unscored: The first evaluator's reason for having no score, by `ama` or `sra`.
        incomplete: Whether the text breaks off and is not accepted for that.
    """

    ama: float | None
    sra: float | None
    risks: float | None
    readable: bool
    accepted: bool
    mandatory: bool
    reasons: tuple[str, ...] = ()
    unscored: Mapping[str, Unscored] = field(default_factory=dict)
    refused: bool = False
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What must change.

    Attributes:
        outcome: Its steps, or why the planner gave none; the evaluators' reasons then stand in for them.
        steps: What the generator was told.
        usage: Cost of the call.
        model: Model id as the server resolved it.
    """

    outcome: Outcome[tuple[str, ...]]
    steps: tuple[str, ...]
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A text as a generator wrote it.

    Attributes:
        outcome: The text, or why there is none.
        origin: `given`, `generated` or `refined`.
        generator: Its role; "" where the text was given.
        usage: Cost of the call.
        model: Model id as the server resolved it.
        truncated: Whether a reply was cut at the token limit, also where asking again gave a whole one.
        incomplete: Whether the text itself breaks off at the token limit.
    """

    outcome: Outcome[str]
    origin: Origin
    generator: str = ""
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None
    truncated: bool = False
    incomplete: bool = False

    @property
    def text(self) -> str | None:
        """The text, or None."""
        return self.outcome.value if isinstance(self.outcome, Scored) else None


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the answer and what became of it.

    Attributes:
        number: From 1.
        draft: The text.
        assessments: What each evaluator said; empty where it was not assessed.
        consensus: What they come to, or None.
        plan: What had to change, or None.
        stage: `loop`, or `final_check` where it was assessed after the budget had ended.
        rivals: Candidates of other generators that did not go on.
    """

    number: int
    draft: Draft
    assessments: tuple[Assessment, ...] = ()
    consensus: Consensus | None = None
    plan: Plan | None = None
    stage: Literal["loop", "final_check"] = "loop"
    rivals: tuple[Version, ...] = ()


@dataclass(frozen=True, slots=True)
class Helpfulness:
    """Whether the returned text helps.

    Attributes:
        outcome: Whether it was read.
        refusal: Whether it only refuses; None where it was not read.
        vague: Whether it is too vague to help; None where it was not read.
        reason: Why, or None.
        refusal_words: Whether it holds the words of a refusal: a cheap cross-check without an LM.
        usage: Cost of the call.
        model: Model id as the server resolved it.
    """

    outcome: Outcome[bool]
    refusal: bool | None
    vague: bool | None
    reason: str | None
    refusal_words: bool
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None


@dataclass(frozen=True, slots=True)
class PromptCategory:
    """Risk category of a prompt.

    Attributes:
        outcome: The category, or why there is none.
        reason: Why, or None.
        usage: Cost of the call.
        model: Model id as the server resolved it.
    """

    outcome: Outcome[Category]
    reason: str | None = None
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None


@dataclass(frozen=True, slots=True)
class GateDecision:
    """Whether a text enters the loop.

    Attributes:
        entered: True also where the gate could not be read.
        reason: Why.
        outcome: Whether the gate was read.
        usage: Cost of the call.
        model: Model id as the server resolved it.
    """

    entered: bool
    reason: str
    outcome: Outcome[bool]
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None


@runtime_checkable
class Gate(Protocol):
    """Decides which texts enter the loop."""

    async def decide(self, question: str, answer: str) -> GateDecision:
        """Looks at a first answer."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """How an answer was mended.

    Attributes:
        question: The request.
        history: Turns before it.
        versions: Every version of the text, in order.
        stopped: Why the loop ended.
        converged: Whether a text was accepted within the loop; None where that could not be judged.
        iterations: Assessments made in the loop; 1 = accepted as first written.
        gate: What the gate said, or None without one.
        category: Risk category of the prompt, or None where it was not asked for.
        helpfulness: Whether the returned text helps, or None where it was not asked for.
        not_sent: Sampling by role that was asked for and that the role's model refuses.
    """

    question: str
    history: tuple[ChatTurn, ...]
    versions: tuple[Version, ...]
    stopped: Stop
    converged: bool | None
    iterations: int
    gate: GateDecision | None = None
    category: PromptCategory | None = None
    helpfulness: Helpfulness | None = None
    not_sent: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def final(self) -> Version:
        """The returned version: the last one that has a text, else the last one."""
        with_text = [version for version in self.versions if version.draft.text is not None]
        return with_text[-1] if with_text else self.versions[-1]

    @property
    def assessed(self) -> Version | None:
        """The last version that was assessed within the loop, or None."""
        found = [version for version in self.versions if version.consensus is not None and version.stage == "loop"]
        return found[-1] if found else None

    @property
    def final_check(self) -> Consensus | None:
        """The assessment after the budget had ended, or None."""
        last = self.versions[-1]
        return last.consensus if last.stage == "final_check" else None
