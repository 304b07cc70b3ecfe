"""Pairs to DSPy examples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dspy_mama.core.cases import DOMAINS, QAPair

if TYPE_CHECKING:
    import dspy


def to_examples(pairs: Iterable[QAPair]) -> list[dspy.Example]:
    """Returns one example a pair: inputs `question` and `answer`; `id` and the gold labels beside them.

    Gold fields are `medical_risk`, `ethical_risk` and `legal_risk`, None where there is no label. Experts' notes are
    left out, since they give the label away.
    """
    import dspy

    return [
        dspy.Example(
            id=pair.id,
            question=pair.question,
            answer=pair.answer,
            **{f"{domain}_risk": pair.gold.get(domain) for domain in DOMAINS},
        ).with_inputs("question", "answer")
        for pair in pairs
    ]
