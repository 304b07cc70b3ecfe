"""System C: who sits on the panel, how long it discusses, and what it is compared with."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from dspy_mama.settings.grading import GradingSettings
from dspy_mama.settings.strict import STRICT, OneLine

DiagnosisStage = Literal["primary", "follow_up", "knowledge"]
DiagnosisMethod = Literal["mac", "direct", "cot", "self_consistency", "self_refine"]
PanelRole = Literal["doctor", "supervisor", "concluder", "consultant", "speaker"]
Temperature = Annotated[float, Field(ge=0, le=2)]

NO_MAJORITY: Final = "self_consistency has no part in the stage knowledge: entries in prose have no majority"


@dataclass(frozen=True, config=STRICT)
class BaselineSettings:
    """Single models that the panel is compared with (paper C, Comparative analysis).

    Attributes:
        paths: Independent answers of self-consistency, 1 to 100.
        rounds: Feedback-and-rewrite rounds of self-refine, 1 to 20.
        temperature: Sampling temperature of self-consistency and self-refine, 0 to 2; None = the LM's own.
        merge_synonyms: Ask the LM which of self-consistency's diagnoses mean the same, after the normaliser.
    """

    paths: int = Field(default=10, ge=1, le=100)
    rounds: int = Field(default=4, ge=1, le=20)
    temperature: Temperature | None = 0.7
    merge_synonyms: bool = False


@dataclass(frozen=True, config=STRICT)
class PanelSettings:
    """The discussion.

    Attributes:
        name: Name of this choice.
        doctors: Doctors on the panel, 2 to 5.
        supervisor: A supervisor sums up and says when there is consensus; off = the doctors' own typed agreement
            ends the discussion.
        specialties: `none`; `chosen` by a senior consultant from `allow_list` for each case; or `fixed`, the first of
            `allow_list`.
        allow_list: Specialties to choose from, one line each; empty = the 38 that come with the library.
        speaker: Who speaks next after everybody was heard: `auto` (the supervisor names the next doctor, and after a
            doctor's turn an LM chooses), or `round_robin` (fixed order, no such calls).
        allow_repeat: With `auto`, whether the LM may choose whoever spoke last, as AutoGen's group chat may.
        rounds: At most so many rounds, 1 to 100 (the paper's is 13); enough for everybody to speak once, the supervisor
            included, for it is what brings the paper's panel to consensus. Without one, a single turn of each doctor
            can end in no agreement (the first to speak has nothing to agree with): the concluder alone decides.
        round: What counts as a round: `turn` = one turn of a doctor or the supervisor, as AutoGen's group chat counts
            (its presentation of the case is the first there, and none here); `pass` = one turn of everybody.
        conclude: `open` asks the concluder only where the supervisor's accepted consensus is not itself the outcome;
            `always` asks it in any case.
        argument_characters: Length of a doctor's argument at most, 80 to 8,000.
        prompt_tokens: Tokens of case and discussion together that a prompt may hold, by the estimate of
            `approximate_tokens`; older turns are left out beyond it, with a line that says so. Single models see a
            longer case cut alike.
        temperatures: Sampling temperature by role, 0 to 2; a role without one takes its LM's own.
        stages: What is asked: a case's stages `primary` and `follow_up`, and `knowledge`, what is known of each
            disease that the cases have (six dimensions, each disease once).
        methods: Programs to run on each: the panel (`mac`) and the baselines.
        baselines: Settings of the baselines.
        repeats: Independent diagnoses of every case, stage and method, 1 to 50; from 2 on, Fleiss' kappa is given.
        grading: How diagnoses are graded.
    """

    name: str = "default"
    doctors: int = Field(default=4, ge=2, le=5)
    supervisor: bool = True
    specialties: Literal["none", "chosen", "fixed"] = "none"
    allow_list: tuple[OneLine, ...] = ()
    speaker: Literal["auto", "round_robin"] = "auto"
    allow_repeat: bool = False
    rounds: int = Field(default=13, ge=1, le=100)
    round: Literal["turn", "pass"] = "turn"
    conclude: Literal["open", "always"] = "open"
    argument_characters: int = Field(default=320, ge=80, le=8000)
    prompt_tokens: int = Field(default=2400, ge=200)
    temperatures: dict[PanelRole, Temperature] = Field(default_factory=dict)
    stages: tuple[DiagnosisStage, ...] = ("primary", "follow_up")
    methods: tuple[DiagnosisMethod, ...] = ("mac", "direct", "cot", "self_consistency", "self_refine")
    baselines: BaselineSettings = Field(default_factory=BaselineSettings)
    repeats: int = Field(default=1, ge=1, le=50)
    grading: GradingSettings = Field(default_factory=GradingSettings)

    def __post_init__(self) -> None:
        """Refuses a discussion in which not everybody is heard, and choices that are named twice or not at all."""
        speakers = self.doctors + self.supervisor
        if self.round == "turn" and self.rounds < speakers:
            led = " and the supervisor, who speaks after them," if self.supervisor else ""
            raise ValueError(
                f"rounds={self.rounds}: with round=turn each of the {self.doctors} doctors{led} needs one; "
                f"set rounds to {speakers} or more, or take fewer doctors"
            )
        for name in ("stages", "methods", "allow_list"):
            given = [str(item).casefold().strip() for item in getattr(self, name)]
            if len(set(given)) < len(given):
                raise ValueError(f"{name}: names one twice")
        if self.stages == ("knowledge",) and self.methods == ("self_consistency",):
            raise ValueError(f"methods: {NO_MAJORITY}; name another method")
        if not self.stages or not self.methods:
            raise ValueError("stages and methods: name at least one of each")
        if self.specialties != "none" and self.allow_list and len(self.allow_list) < self.doctors:
            raise ValueError(f"allow_list: {len(self.allow_list)} specialties for {self.doctors} doctors; add some")
