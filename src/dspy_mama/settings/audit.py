"""System A: context, prompts, roles, and which parts are on."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from dspy_mama.settings.strict import STRICT, OneLine

SystemName = Literal["baseline", "enhanced", "embedding", "rag", "rag_foreign", "exemplar"]
AblationName = Literal["full", "ma", "ma_mpa", "ma_ek", "ma_without_ma2", "mpa", "ek"]
ProbabilitySource = Literal["token", "stated", "none"]
Jurisdiction = Literal["JP", "US", "EU", "DE"]


@dataclass(frozen=True, config=STRICT)
class RouterSettings:
    """How a question gets its specialist (expert generation).

    Attributes:
        scope: `case` names one specialty per question; `agnostic` sends every question to a general physician.
        allow_list: Permitted specialties; empty = open vocabulary.
        aliases: Other spellings, to the specialty of the allow-list that they mean.
        mapping: File (csv or json) of curated specialties per question; replaces the LM where it has the question.
        table: File in which generated specialties are kept and from which they are reused.
    """

    scope: Literal["case", "agnostic"] = "case"
    allow_list: tuple[OneLine, ...] = ()
    aliases: dict[OneLine, OneLine] = Field(default_factory=dict)
    mapping: str | None = None
    table: str | None = None


@dataclass(frozen=True, config=STRICT)
class SystemSettings:
    """One of the paper's systems: the context component and the MA3 prompt; or a trained head without any LM.

    Attributes:
        name: The system; `exemplar` asks a trained head and no LM.
        context: Which collections MA2 may read: none, the limited encyclopedic source, all of a jurisdiction.
        jurisdiction: Whose law legal risk means, in every prompt.
        jurisdictions: Whose sources MA2 may read.
        query: What evidence is searched with: the question, the answer, both, or the question with each of the answer's
            claims (sentences; one embedding each).
        judge_prompt: MA3's prompt, `base` or `enhanced`.
        evidence: What MA3 sees: MA2's `notes` (the paper), the `topk` passages, or both (`hybrid`).
        consensus: MA3 by reasoning (`judge`) or by counting votes (`majority`, a comparator).
        probability: Where a label's probability comes from.
        thresholds: Cut per domain in [0, 1] for the final label; a missing domain keeps the label as written.
        router: How a question gets its specialist.
        program: A saved program that a run takes, such as a compiled one: a file, a run folder, or an address in MLflow
            (`models:/NAME/VERSION`). Everything else here must be what it was made from.
        order_seed: Seed of the order in which prompts list things: the passages of evidence, and the domains of the
            assessments that MA3 reads. None = best passage first, domains as everywhere. Inputs and outputs of a
            prompt keep their places.
        exemplar: Show MA3 the probability of a trained head as one more voice.
        head: File of the head, as `mama baseline --head FILE` makes it; None = the one that ships.
    """

    name: SystemName = "rag"
    context: Literal["none", "encyclopedic", "all"] = "all"
    jurisdictions: tuple[str, ...] = ("JP", "INT")
    query: Literal["question", "answer", "both", "claims"] = "both"
    judge_prompt: Literal["base", "enhanced"] = "enhanced"
    evidence: Literal["notes", "topk", "hybrid"] = "notes"
    consensus: Literal["judge", "majority"] = "judge"
    probability: ProbabilitySource = "token"
    thresholds: dict[Literal["medical", "ethical", "legal"], float] = Field(default_factory=dict)
    router: RouterSettings = Field(default_factory=RouterSettings)
    program: str | None = None
    order_seed: int | None = None
    jurisdiction: Jurisdiction = "JP"
    exemplar: bool = False
    head: str | None = None


@dataclass(frozen=True, config=STRICT)
class AblationSettings:
    """Which parts of the method are on (paper A, ablation study).

    Attributes:
        name: The ablation.
        initial: MA1 runs.
        verification: MA2 runs.
        consensus: MA3 runs.
        roles: Professional role agents (MPA); off = one general assessor.
        knowledge: External knowledge (EK); off = no retrieval.
    """

    name: AblationName = "full"
    initial: bool = True
    verification: bool = True
    consensus: bool = True
    roles: bool = True
    knowledge: bool = True

    def __post_init__(self) -> None:
        """Refuses a method without a judge."""
        if not (self.initial or self.verification):
            raise ValueError("an ablation needs the initial or the verification phase: nothing would be assessed")
