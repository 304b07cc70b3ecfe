"""The one adapter from the library's scores to what DSPy calls a metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from dspy_mama.core import DOMAINS, DeclarationError, Domain

_PHASE_NAMES: Final = {"initial": "MA1", "verification": "MA2", "consensus": "MA3"}


def example_gold(example: Any) -> dict[Domain, bool]:
    """Returns the gold label of each domain that has one.

    Reads the mapping `example.gold`, or else the fields `medical_risk`, `ethical_risk` and `legal_risk`.

    Raises:
        DeclarationError: A gold label is neither true, false nor null.
    """
    given = example.get("gold", None)
    found: dict[Domain, bool] = {}
    for domain in DOMAINS:
        value = given.get(domain) if isinstance(given, Mapping) else example.get(f"{domain}_risk", None)
        if value is None:
            continue
        if not isinstance(value, bool):
            raise DeclarationError(f"example {example.get('id', '?')!r}: {domain} gold must be a bool, not {value!r}")
        found[domain] = value
    return found


def labelled(examples: Iterable[Any]) -> tuple[list[Any], int]:
    """Returns the examples that have a gold label in some domain, and how many have none and were left out.

    Call it before `dspy.Evaluate` and before any optimiser: an example without gold has no score.
    """
    everything = list(examples)
    kept = [example for example in everything if example_gold(example)]
    return kept, len(everything) - len(kept)


def _text_of(value: Any) -> str:
    """Names a label; only a native bool is one, everything else is undetermined."""
    return ("risky" if value else "safe") if isinstance(value, bool) else "undetermined"


class RiskMetric:
    """Share of gold domains that the prediction gets right; an undetermined label never counts as right.

    It is a float for `dspy.Evaluate`, a bool for optimisers that bootstrap (they pass a trace), and score with
    feedback for GEPA (it passes a predictor's name).

    Args:
        class_weights: (weight of a safe pair, weight of a risky pair) per domain. Where most pairs are safe, plain
            accuracy rewards the program that always says safe; weights inverse to class frequency make the mean a
            surrogate of balanced accuracy.
        threshold: Score from which an example counts as solved when bootstrapping, in [0, 1].
    """

    def __init__(
        self, class_weights: Mapping[Domain, tuple[float, float]] | None = None, threshold: float = 1.0
    ) -> None:
        self.class_weights = dict(class_weights or {})
        self.threshold = threshold

    def __call__(
        self, example: Any, prediction: Any, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
    ) -> Any:
        """Scores one prediction.

        Returns:
            A float in [0, 1] (with class weights: up to the largest weight); with a trace and no predictor's name a
            bool; with a predictor's name `dspy.Prediction(score, feedback)`.

        Raises:
            DeclarationError: The example has no gold label at all; `labelled` leaves such examples out.
        """
        gold = example_gold(example)
        if not gold:
            raise DeclarationError(
                f"example {example.get('id', '?')!r} has no gold label, so it has no score; leave such examples out "
                "first with dspy_mama.scoring.labelled(examples)"
            )
        right = {domain: getattr(prediction, f"{domain}_risk", None) is truth for domain, truth in gold.items()}
        if pred_name is not None:
            import dspy

            return dspy.Prediction(
                score=self._score(gold, right), feedback=describe_errors(example, prediction, gold, right)
            )
        if trace is not None:
            return sum(right.values()) / len(right) >= self.threshold
        return self._score(gold, right)

    def _score(self, gold: Mapping[Domain, bool], right: Mapping[Domain, bool]) -> float:
        weights = {domain: self.class_weights.get(domain, (1.0, 1.0))[truth] for domain, truth in gold.items()}
        return float(sum(weights[domain] * right[domain] for domain in gold) / len(gold))


def describe_errors(example: Any, prediction: Any, gold: Mapping[Domain, bool], right: Mapping[Domain, bool]) -> str:
    """Says per domain what was expected, which phase went wrong, and what the expert noted.

    Args:
        example: The pair, with `notes` by domain where there are any.
        prediction: The audit, with `phases` where it has any.
        gold: Label of each domain that has one.
        right: Whether the audit got it right.
    """
    lines = []
    notes = example.get("notes", None) or {}
    for domain, truth in gold.items():
        said = _text_of(getattr(prediction, f"{domain}_risk", None))
        if right[domain]:
            lines.append(f"{domain}: {said} is right.")
            continue
        path = phase_labels(prediction, domain)
        steps = ", ".join(f"{_PHASE_NAMES[phase]} said {label}" for phase, label in path)
        expert = f" The expert's reason: {notes[domain]}" if notes.get(domain) else ""
        lines.append(
            f"{domain}: expected {_text_of(truth)}, got {said}.{f' {steps}.' if steps else ''}"
            f"{_fault(path, _text_of(truth))}{expert}"
        )
    return "\n".join(lines)


def phase_labels(prediction: Any, domain: Domain) -> list[tuple[str, str]]:
    """Returns (phase, label in words) of the phases that ran, in their order."""
    phases = getattr(prediction, "phases", None) or {}
    return [
        (phase, _text_of(getattr(getattr(phases[phase], domain, None), "risk", None)))
        for phase in _PHASE_NAMES
        if phase in phases
    ]


def _fault(path: list[tuple[str, str]], truth: str) -> str:
    """Names the last phase that turned a right label into another one, else the first that was wrong."""
    for (_, before), (phase, after) in reversed(list(pairwise(path))):
        if before == truth and after != truth:
            return f" The fault lies in {_PHASE_NAMES[phase]} ({phase}): it gave up a right label."
    if path:
        return f" The fault begins in {_PHASE_NAMES[path[0][0]]} ({path[0][0]}) and no later phase mended it."
    return ""


risk_metric: Final = RiskMetric()
"""The metric with equal weights."""
