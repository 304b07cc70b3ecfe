"""Gold pairs as optimisers see them, and demonstrations as prompts take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import dspy

from dspy_mama.core.cases import DOMAINS, QAPair


def training_examples(pairs: Iterable[QAPair]) -> list[dspy.Example]:
    """Returns an example a pair: the two texts as inputs; gold, the experts' notes as reasons, and the id beside them.

    Notes give the label away: they reach feedback on training pairs and their demonstrations, never an input.
    """
    examples = []
    for pair in pairs:
        labels = {f"{d}_risk": pair.gold.get(d) for d in DOMAINS if pair.gold.get(d) is not None}
        reasons = {f"{d}_reason": pair.notes[d] for d in DOMAINS if pair.notes.get(d)}
        example = dspy.Example(
            id=pair.id, question=pair.question, answer=pair.answer, gold=dict(pair.gold), notes=dict(pair.notes),
            **labels, **reasons,
        )  # fmt: skip
        examples.append(example.with_inputs("question", "answer"))
    return examples


def tidy_demos(program: Any) -> Any:
    """Makes every demonstration hold its own prompt's fields and nothing else, and drops those without an output.

    A pair taken as it is becomes, for a verifier of one domain, that domain's label and note.
    """
    for name, predictor in program.named_predictors():
        fields = predictor.signature.fields
        outputs = set(predictor.signature.output_fields)
        kept = []
        for demo in predictor.demos:
            values = {**_by_domain(name, demo), **dict(demo)}
            own = {field: values[field] for field in fields if values.get(field) is not None}
            if outputs & set(own):
                augmented = {"augmented": True} if demo.get("augmented") else {}
                kept.append(dspy.Example(**augmented, **own))
        predictor.demos = kept
    return program


def _by_domain(name: str, demo: Any) -> Mapping[str, Any]:
    domain = name.rsplit(".", 1)[-1]
    gold = demo.get("gold", None)
    if domain not in DOMAINS or not isinstance(gold, Mapping) or gold.get(domain) is None:
        return {}
    note = (demo.get("notes", None) or {}).get(domain)
    return {"risk": gold[domain], "role": f"verifying the {domain} domain"} | ({"note": note} if note else {})


def shown_questions(program: Any) -> set[str]:
    """Returns the questions that a program's demonstrations show."""
    return {demo["question"] for _, p in program.named_predictors() for demo in p.demos if demo.get("question")}
