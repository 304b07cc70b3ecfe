"""How a program is optimised on gold pairs, and what that may cost."""

from __future__ import annotations

from dataclasses import field
from typing import Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from dspy_mama.core.errors import DeclarationError
from dspy_mama.settings.lm import LMSpec
from dspy_mama.settings.strict import STRICT

OptimizerName = Literal[
    "none",
    "labelled",
    "bootstrap",
    "mipro",
    "gepa",
    "simba",
    "reanchor",
    "token_thresholds",
    "staged_bootstrap",
    "staged_gepa",
    "staged_mipro",
]

DEMONSTRATING: Final = ("labelled", "bootstrap", "mipro", "simba", "staged_bootstrap", "staged_mipro")
"""Optimisers that may put texts of training pairs into prompts."""

Target = Literal["average_macro_f1", "joint_accuracy"]


@dataclass(frozen=True, config=STRICT)
class BudgetSettings:
    """What compiling may spend over all its LM calls: task, teacher and reflection. None = no limit.

    Attributes:
        calls: Calls that reach an LM, over all starts of a run that was cut short; replies from its journal are free.
        tokens: Tokens sent and received.
        cost: US dollars; needs LMs with a known price.
        minutes: Minutes of this start.
    """

    calls: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    cost: float | None = Field(default=None, gt=0)
    minutes: float | None = Field(default=None, gt=0)


@dataclass(frozen=True, config=STRICT)
class SplitSettings:
    """Shares of the gold pairs, stratified over the three labels together, chosen by hash of the id.

    Attributes:
        train: Share that optimisers learn from.
        validation: Share on which candidates are chosen; the rest is the test set, looked at once.
        salt: Another salt is another split.
        file: Splits to use instead: json with the ids of `train`, `validation` and `test`.
        folds: Outer folds of nested cross-validation; 0 = one split.
    """

    train: float = Field(default=0.4, gt=0, lt=1)
    validation: float = Field(default=0.3, gt=0, lt=1)
    salt: str = "dspy_mama"
    file: str | None = None
    folds: int = Field(default=0, ge=0, le=20)

    def __post_init__(self) -> None:
        """Checks the shares together.

        Raises:
            DeclarationError: They leave no test set, or there is one fold.
        """
        if self.train + self.validation >= 1:
            raise DeclarationError("optimizer.split: train + validation must be below 1; the rest is the test set")
        if self.folds == 1:
            raise DeclarationError("optimizer.split.folds: take 0 (one split) or 2 and more")


@dataclass(frozen=True, config=STRICT)
class MetricSettings:
    """What an optimiser is rewarded for, per pair.

    Attributes:
        balanced: Weigh each class inversely to how often it occurs in the training gold.
        joint: Share of the score that only all labels right together earn, 0 to 1.
        citations: Weight of citation support, as a share of the score, 0 to 1.
        cost: Weight of cost, as a share of the score, 0 to 1.
        cost_scale: Tokens per pair at which the cost term is one half.
    """

    balanced: bool = True
    joint: float = Field(default=0.25, ge=0, le=1)
    citations: float = Field(default=0.0, ge=0, lt=1)
    cost: float = Field(default=0.0, ge=0, lt=1)
    cost_scale: int = Field(default=8000, ge=1)

    def __post_init__(self) -> None:
        """Checks the weights together.

        Raises:
            DeclarationError: Citations and cost leave nothing for the labels.
        """
        if self.citations + self.cost >= 1:
            raise DeclarationError("optimizer.metric: citations + cost must be below 1; the rest is for the labels")


@dataclass(frozen=True, config=STRICT)
class OptimizerSettings:
    """Optimiser of prompts, demonstrations and cuts; `none` leaves the program as it is.

    Attributes:
        name: The optimiser; each is DSPy's own but `token_thresholds`. The staged ones fit thresholds afterwards.
        target: What candidates are chosen by on the validation pairs, over the corpus.
        keep: `better` keeps the compiled program only if it beats the uncompiled one on validation.
        seed: Seed of the optimiser.
        demos: Demonstrations per prompt at most.
        candidates: Candidates that are tried (bootstrap, mipro) or made a step (simba).
        trials: Trials of mipro's search.
        minibatch: Pairs a candidate is tried on before all of them (mipro, simba), or reflected on (gepa).
        rounds: Steps of simba, or for gepa its runs of the program in units of all training and validation pairs.
        threads: Pairs in flight while optimising.
        reflection: LM that reflects and proposes; None = the judge's.
        teacher: LM that makes demonstrations; None = each role's own.
        budget: What may be spent.
        split: How gold pairs are divided.
        metric: What is rewarded per pair.
        register: Name in MLflow's model registry; None = logged only.
    """

    name: OptimizerName = "none"
    target: Target = "average_macro_f1"
    keep: Literal["better", "always"] = "better"
    seed: int = 0
    demos: int = Field(default=3, ge=1, le=32)
    candidates: int = Field(default=6, ge=1, le=100)
    trials: int = Field(default=12, ge=1, le=500)
    minibatch: int = Field(default=8, ge=1)
    rounds: int = Field(default=6, ge=1, le=200)
    threads: int = Field(default=4, ge=1)
    reflection: LMSpec | None = None
    teacher: LMSpec | None = None
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    split: SplitSettings = field(default_factory=SplitSettings)
    metric: MetricSettings = field(default_factory=MetricSettings)
    register: str | None = None

    def demonstrates(self) -> bool:
        """Tells whether texts of training pairs may come into the prompts."""
        return self.name in DEMONSTRATING
