"""The optimisers by name; each is DSPy's own class, given the project's reward, LMs and limits."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import dspy
from dspy.utils.callback import BaseCallback

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.schema import field_specs
from dspy_mama.optimize.examples import tidy_demos
from dspy_mama.optimize.quiet import quiet
from dspy_mama.scoring.reward import Feedback, Reward
from dspy_mama.settings import OptimizerSettings

logger = logging.getLogger(__name__)

STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "staged_bootstrap": ("bootstrap", "token_thresholds"),
    "staged_gepa": ("gepa", "token_thresholds"),
    "staged_mipro": ("mipro", "token_thresholds"),
}
"""Optimisers that are several in turn; any other is its own one stage."""

_ENDLESS: Final = 10**9
"""Errors that DSPy's evaluation may meet: after the budget is spent every further pair fails, at no cost."""


@dataclass(frozen=True)
class Search:
    """What an optimiser is given.

    Attributes:
        program: The program, its LMs metered.
        train: Examples that may be learned from.
        validation: Examples on which candidates are tried.
        reward: Score of a pair.
        settings: The optimiser's settings.
        reflection: LM that proposes, or None.
        teacher: Program that makes demonstrations, or None = the program itself.
        exhausted: Tells why the search must stop, or None.
        broken: Tells why no LM call can be answered any more, or None.
    """

    program: Any
    train: list[Any]
    validation: list[Any]
    reward: Reward
    settings: OptimizerSettings
    reflection: Any
    teacher: Any
    exhausted: Callable[[], str | None]
    broken: Callable[[], str | None]


def stages_of(name: str) -> tuple[str, ...]:
    """Returns the stages of an optimiser, in order."""
    return STAGES.get(name, (name,))


def check_optimizer(settings: OptimizerSettings, program: Any) -> None:
    """Refuses what cannot work, before the first token.

    Raises:
        DeclarationError: A package is missing, or the program states no probabilities to cut.
    """
    stages = stages_of(settings.name)
    if "mipro" in stages and importlib.util.find_spec("optuna") is None:
        raise DeclarationError("optimizer mipro needs the package optuna: pip install optuna")
    if "reanchor" in stages and not _deciding(program):
        raise DeclarationError(
            "optimizer=reanchor fits cuts of stated probabilities, and this program states none: take "
            "system.probability=stated, or optimizer=token_thresholds"
        )
    lms = {id(predictor.lm or dspy.settings.lm) for _, predictor in program.named_predictors()}
    if not lms:
        raise DeclarationError("this program asks no LM: there is no prompt to optimise")
    if "simba" in stages and len(lms) > 1:
        raise DeclarationError(
            "optimizer=simba samples every role with one LM, and this program's roles have several: take gepa or mipro"
        )


def _deciding(program: Any) -> bool:
    specs = (spec for _, predictor in program.named_predictors() for spec in field_specs(predictor.signature))
    return any(spec.kind == "probability" for spec in specs)


def _labelled(search: Search) -> list[Any]:
    optimiser = dspy.LabeledFewShot(k=search.settings.demos)
    return [optimiser.compile(search.program, trainset=search.train)]


def _bootstrap(search: Search) -> list[Any]:
    own = search.settings
    optimiser = dspy.BootstrapFewShotWithRandomSearch(
        search.reward,
        max_bootstrapped_demos=own.demos,
        max_labeled_demos=own.demos,
        num_candidate_programs=own.candidates,
        num_threads=own.threads,
        max_errors=_ENDLESS,
    )
    best = optimiser.compile(search.program, teacher=search.teacher, trainset=search.train, valset=search.validation)
    return [entry["program"] for entry in best.candidate_programs]


def _mipro(search: Search) -> list[Any]:
    own = search.settings
    optimiser = dspy.MIPROv2(
        metric=search.reward,
        prompt_model=search.reflection,
        task_model=search.reflection,  # every predictor has its own LM; this one is only asked for where it has none
        max_bootstrapped_demos=own.demos,
        max_labeled_demos=own.demos,
        auto=None,
        num_candidates=own.candidates,
        num_threads=own.threads,
        max_errors=_ENDLESS,
        seed=own.seed or 9,
    )
    best = optimiser.compile(
        search.program,
        trainset=search.train,
        valset=search.validation,
        teacher=search.teacher,
        num_trials=own.trials,
        minibatch_size=min(own.minibatch, len(search.validation)),
        minibatch=own.minibatch < len(search.validation),
    )
    tried = getattr(best, "candidate_programs", [])
    return [best, *(entry["program"] for entry in tried)]


def _gepa(search: Search) -> list[Any]:
    own = search.settings

    def stop(state: Any) -> bool:
        return search.exhausted() is not None

    optimiser = dspy.GEPA(
        metric=Feedback(search.reward),
        max_full_evals=own.rounds,
        reflection_minibatch_size=min(own.minibatch, len(search.train)),
        reflection_lm=search.reflection,
        num_threads=own.threads,
        track_stats=True,
        seed=own.seed,
        gepa_kwargs={"stop_callbacks": [stop]},
    )
    best = optimiser.compile(search.program, trainset=search.train, valset=search.validation)
    found = best.detailed_results
    order = sorted(range(len(found.candidates)), key=lambda i: -found.val_aggregate_scores[i])
    return [found.candidates[i] for i in order]


def _simba(search: Search) -> list[Any]:
    own = search.settings
    optimiser = dspy.SIMBA(
        metric=search.reward,
        bsize=min(own.minibatch, len(search.train)),
        num_candidates=own.candidates,
        max_steps=own.rounds,
        max_demos=own.demos,
        prompt_model=search.reflection,
        num_threads=own.threads,
    )
    best = optimiser.compile(search.program, trainset=search.train, seed=own.seed)
    return [entry["program"] for entry in best.candidate_programs]


def _reanchor(search: Search) -> list[Any]:
    from dspy.experimental import ReAnchor

    optimiser = ReAnchor(metric=search.reward, num_threads=search.settings.threads, require_cache=False)
    return [optimiser.compile(search.program, trainset=search.train)]


OPTIMISERS: Final[Mapping[str, Callable[[Search], list[Any]]]] = {
    "labelled": _labelled,
    "bootstrap": _bootstrap,
    "mipro": _mipro,
    "gepa": _gepa,
    "simba": _simba,
    "reanchor": _reanchor,
}
"""Optimisers that ask LMs; each returns its candidates, the best by its own count first."""


class CandidateLog(BaseCallback):  # type: ignore[misc]
    """Programs that DSPy evaluated on all validation pairs, so that a search which is cut short leaves them."""

    def __init__(self, validation: list[Any]) -> None:
        """Watches for evaluations on these examples."""
        self._ids = [example.id for example in validation]
        self._open: dict[str, Any] = {}
        self.found: list[tuple[float, Any]] = []

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Keeps the program until its score is known."""
        devset = inputs.get("devset") or instance.devset
        if [example.get("id", None) for example in devset] == self._ids:
            self._open[call_id] = inputs.get("program")

    def on_evaluate_end(self, call_id: str, outputs: Any | None, exception: Exception | None = None) -> None:
        """Keeps a program that was evaluated to the end."""
        program = self._open.pop(call_id, None)
        if program is not None and outputs is not None and hasattr(program, "named_predictors"):
            self.found.append((float(outputs.score), program))


def run_optimiser(name: str, search: Search) -> list[Any]:
    """Runs an optimiser, and returns its candidates, best first by its own count; those known if it is cut short.

    Args:
        name: A stage that asks LMs.
        search: What it works with.

    Raises:
        DeclarationError: LM or settings are at fault.
    """
    log = CandidateLog(search.validation)
    callbacks = [*(dspy.settings.callbacks or []), log]
    try:
        # History is switched on: it is how calls are charged, and metered LMs keep none of it.
        with dspy.context(callbacks=callbacks, disable_history=False, max_errors=_ENDLESS), quiet():
            found = OPTIMISERS[name](search)
    except DeclarationError:
        raise
    except Exception as error:
        if search.exhausted() is None and search.broken() is None:
            raise
        logger.info("%s was cut short: %s", name, error)
        found = []
    if (why := search.broken()) is not None:
        raise DeclarationError(f"the LM cannot be used: {why}; the same command goes on from here")
    logged = [program for _, program in sorted(log.found, key=lambda entry: -entry[0])]
    return [tidy_demos(program.deepcopy()) for program in [*found, *logged]]
