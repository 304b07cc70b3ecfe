"""What an optimiser is rewarded for, per pair, and GEPA's feedback: the phase at fault, and the expert's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dspy_mama.core import DOMAINS, Domain
from dspy_mama.scoring.metric import describe_errors, example_gold, phase_labels
from dspy_mama.settings import MetricSettings

Weights = Mapping[Domain, tuple[float, float]]

HEAVIEST: Final = 10.0
"""Largest class weight: a class seen once in 100 pairs must not decide every choice."""

_PHASE_OF: Final = {"initial": "initial", "verification": "verification", "consensus": "consensus"}
_NAMES: Final = {"initial": "MA1", "verification": "MA2", "consensus": "MA3"}


def class_weights(examples: Iterable[Any]) -> dict[Domain, tuple[float, float]]:
    """Returns (weight of safe, weight of risky) per domain, inverse to frequency, from training gold alone.

    With them the mean over pairs is a surrogate of balanced accuracy: a program that always says safe earns one half.
    """
    golds = [example_gold(example) for example in examples]
    weights: dict[Domain, tuple[float, float]] = {}
    for domain in DOMAINS:
        labels = [gold[domain] for gold in golds if domain in gold]
        risky = sum(labels)
        safe = len(labels) - risky
        if risky and safe:
            weights[domain] = tuple(min(len(labels) / (2 * n), HEAVIEST) for n in (safe, risky))  # type: ignore[assignment]
    return weights


class Reward:
    """Score of a pair in [0, 1]: 1 minus the weighted share of wrong domains, with credit for all right together.

    An undetermined label is wrong. Errors are weighed, not hits, so that a pair without error always scores 1: GEPA
    then knows it for perfect, and over a data set the order of programs is the same.

    A call with a trace is a bootstrapping optimiser's and gives a bool: every label is right.
    """

    def __init__(self, weights: Weights | None = None, settings: MetricSettings | None = None) -> None:
        """Makes the reward.

        Args:
            weights: From `class_weights`, of training pairs; None = every error weighs the same.
            settings: Shares of joint correctness, citations and cost.
        """
        self.weights = dict(weights or {})
        self.settings = settings or MetricSettings()
        self._heaviest = max([1.0, *(weight for pair in self.weights.values() for weight in pair)])

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> float | bool:
        """Scores a prediction; with a trace, tells whether it may become a demonstration."""
        gold = example_gold(example)
        if trace is not None:
            return all(_right(gold, prediction).values())
        return self.score(example, prediction)

    def score(self, example: Any, prediction: Any) -> float:
        """Returns the score in [0, 1].

        Raises:
            DeclarationError: A gold label is no bool.
        """
        gold = example_gold(example)
        if not gold:
            return 0.0
        right = _right(gold, prediction)
        lost = sum(self.weights.get(d, (1.0, 1.0))[truth] for d, truth in gold.items() if not right[d])
        labels = 1.0 - lost / (len(gold) * self._heaviest)
        own = self.settings
        value = (1 - own.joint) * labels + own.joint * all(right.values())
        terms = [(1 - own.citations - own.cost, value)]
        if own.citations and (support := citation_support(prediction)) is not None:
            terms.append((own.citations, support))
        if own.cost and (tokens := tokens_spent(prediction)) is not None:
            terms.append((own.cost, 1 / (1 + tokens / own.cost_scale)))
        # What is not known of a pair has no part in its score.
        return float(sum(weight * term for weight, term in terms) / sum(weight for weight, _ in terms))


class Feedback:
    """A reward as GEPA takes it: five arguments, the same score whether or not a predictor is named, and words."""

    def __init__(self, reward: Reward) -> None:
        """Wraps a reward."""
        self.reward = reward

    def __call__(
        self, example: Any, prediction: Any, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
    ) -> Any:
        """Returns `dspy.Prediction(score, feedback)`; the feedback speaks of the predictor that is named."""
        import dspy

        score = self.reward.score(example, prediction)
        return dspy.Prediction(score=score, feedback=feedback_for(example, prediction, pred_name))


def feedback_for(example: Any, prediction: Any, predictor: str | None = None) -> str:
    """Says what was expected, what each phase said, which was at fault, and what the expert noted.

    Args:
        example: The pair with gold, and the experts' notes where there are any.
        prediction: The audit.
        predictor: Whose instruction is to be improved, such as `verification.legal`; None = the whole program.
    """
    gold = example_gold(example)
    whole = describe_errors(example, prediction, gold, _right(gold, prediction))
    parts = (predictor or "").split(".")
    phase = _PHASE_OF.get(parts[0])
    if phase is None:
        return whole
    domains = [d for d in gold if phase != "verification" or parts[-1] == d or parts[-1] not in DOMAINS]
    lines = [_own_line(example, prediction, phase, domain, gold[domain]) for domain in domains]
    return "\n".join([f"This prompt is {_NAMES[phase]}'s ({phase}).", *lines, "The whole audit:", whole])


def _own_line(example: Any, prediction: Any, phase: str, domain: Domain, truth: bool) -> str:
    said = dict(phase_labels(prediction, domain)).get(phase, "undetermined")
    expected = "risky" if truth else "safe"
    if said == expected:
        return f"{domain}: {_NAMES[phase]} said {said}, which is right."
    note = (example.get("notes", None) or {}).get(domain)
    expert = f" The expert's reason: {note}" if note else ""
    return f"{domain}: {_NAMES[phase]} said {said}, the expert says {expected}.{expert}"


def _right(gold: Mapping[Domain, bool], prediction: Any) -> dict[Domain, bool]:
    return {domain: getattr(prediction, f"{domain}_risk", None) is truth for domain, truth in gold.items()}


def citation_support(prediction: Any) -> float | None:
    """Returns the share of citations that name a shown passage; 0 where none is cited, None where none was shown."""
    phase = (getattr(prediction, "phases", None) or {}).get("verification")
    shares = []
    for domain in DOMAINS:
        verdict: Any = getattr(phase, domain, None)
        if getattr(verdict, "passages", ()):
            good, wrong = len(verdict.citations), verdict.invalid_citations
            shares.append(good / (good + wrong) if good + wrong else 0.0)
    return sum(shares) / len(shares) if shares else None


def tokens_spent(prediction: Any) -> int | None:
    """Returns the tokens that an audit's phases sent and received; None = unknown."""
    used = [phase.usage for phase in (getattr(prediction, "phases", None) or {}).values()]
    counts = [count for usage in used for count in (usage.prompt_tokens, usage.completion_tokens)]
    return None if not counts or any(count is None for count in counts) else sum(counts)
