"""What a run says in numbers: `summary.json`, from records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.evaluation import score_phases
from dspy_mama.reporting.evidence import retrieval_facts
from dspy_mama.reporting.usage import usage_by_phase
from dspy_mama.scoring import labels_from_records, probability_curves
from dspy_mama.stats.intervals import Method

Record = Mapping[str, Any]

EMBEDDED_BANNER: Final = (
    "SmolLM2-135M labels no better than chance: this run shows that the parts work, not how risky the answers are"
)
EXEMPLAR_BANNER: Final = (
    "The exemplar is no LM: it learnt from 40 pairs that were written for this project, with labels that no expert has "
    "checked, and on them an answer's length or words tell about as much; its figures and limits are in "
    "data/exemplar/head.json"
)
NO_SUBSTITUTE: Final = (
    "These labels are an aid to review. They are no substitute for a clinician's decision, for legal advice, or for "
    "the risk management that a medical device requires."
)


def label_banner(models: Mapping[str, Iterable[str]]) -> str | None:
    """Returns the warning to show wherever labels of the embedded LM or the exemplar are shown, or None for others.

    Args:
        models: Resolved model ids by role, as in the summary.
    """
    named = " ".join(model for role in models.values() for model in role).lower()
    signs = {"smollm2-135m": EMBEDDED_BANNER, "exemplar:shipped": EXEMPLAR_BANNER}
    return ". ".join(banner for sign, banner in signs.items() if sign in named) or None


def baseline_banner(models: Mapping[str, Iterable[str]], domains: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Returns what to keep in mind of a classifier that was judged out of fold, or None where there was none.

    Args:
        models: Model ids by role, as in the summary.
        domains: Final scores by domain.
    """
    if "classifier" not in models:
        return None
    scored = {name: own for name, own in domains.items() if own["n"]}
    support = [f"{name} {own['classes']['risky']['support']} of {own['n']}" for name, own in scored.items()]
    return (
        f"A classifier that learnt from these gold labels, judged out of fold (risky: {', '.join(support)}). With so "
        "few risky pairs its figures change from one split to another: read the intervals, not the points"
    )


def summarise(
    records: Sequence[Record],
    *,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
    cluster_by_question: bool = False,
) -> dict[str, Any]:
    """Builds `summary.json`.

    Args:
        records: Rows of `records.jsonl`.
        seed: Seed of the resamples.
        resamples: Resamples behind each interval.
        method: Kind of interval.
        cluster_by_question: Resample pairs with the same question together.

    Returns:
        Plain data without NaN: `n`, `phases`, `final`, `deltas`, `verdicts`, `needs_review`, `unscored_rate` (share of
        final verdicts that could not be had), `usage` per phase and in total, `retrieval`, `routing`, `models`,
        `label_banner`, `curves` (ROC and reliability of the final probabilities, by domain), `seed`, `resamples`,
        `method` and `cluster_by_question`. What is unknown or undefined is null.

    Raises:
        DeclarationError: A record holds a label that is none.
    """
    scores = score_phases(
        records, seed=seed, resamples=resamples, method=method, cluster_by_question=cluster_by_question
    )
    models = _models(records)
    unscored = scores["final"]["unscored"]
    missing = unscored["n"] - unscored["by_kind"].get("undetermined", 0)
    return {
        "n": len(records),
        "final_phases": dict(Counter(str(record.get("final_phase")) for record in records)),
        **scores,
        "verdicts": {domain: scores["final"]["domains"][domain]["verdicts"] for domain in DOMAINS},
        "needs_review": sum(bool(record.get("needs_review")) for record in records),
        "unscored_rate": missing / unscored["of"] if unscored["of"] else None,
        "usage": usage_by_phase(records),
        "retrieval": retrieval_facts(records),
        "routing": _routing(records),
        "models": models,
        "label_banner": label_banner(models) or baseline_banner(models, scores["final"]["domains"]),
        "seconds": sum(record.get("seconds") or 0.0 for record in records),
        "curves": probability_curves(labels_from_records(records, "final")),
        "seed": seed,
        "resamples": resamples,
        "method": method,
        "cluster_by_question": cluster_by_question,
    }


def _models(records: Sequence[Record]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        for role, model in (record.get("models") or {}).items():
            if model:
                found.setdefault(role, set()).add(str(model))
    return {role: sorted(models) for role, models in found.items()}


def _routing(records: Sequence[Record]) -> dict[str, Any]:
    routes = [record["routing"] for record in records if record.get("routing")]
    return {
        "specialties": dict(Counter(str(route.get("specialty") or "unknown") for route in routes).most_common()),
        "origins": dict(Counter(str(route.get("origin") or "unknown") for route in routes)),
        "unscored": sum(route.get("outcome", "scored") != "scored" for route in routes),
        "unverified_sources": sum(bool(route.get("source")) and not route.get("source_verified") for route in routes),
    }
