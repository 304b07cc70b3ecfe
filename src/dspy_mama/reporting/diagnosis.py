"""What a diagnosis run says in numbers: its `summary.json`, from records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from dspy_mama.core.disease_knowledge import KNOWLEDGE
from dspy_mama.reporting.diagnosis_grader import grader_quality
from dspy_mama.reporting.diagnosis_scores import (
    Grid,
    agreement_of_repeats,
    compare_methods,
    differences_of_groups,
    score_places,
)
from dspy_mama.reporting.usage import per_case, total_usage
from dspy_mama.scoring.diagnosis import Record
from dspy_mama.scoring.standing import kept_standing
from dspy_mama.stats.intervals import Method
from dspy_mama.tracking import final_outcomes

EMBEDDED_BANNER: Final = (
    "SmolLM2-135M diagnoses and grades no better than chance: this run shows that the parts work, not which method is "
    "better"
)
NO_SUBSTITUTE: Final = (
    "These diagnoses are an aid to research on language models. They are no substitute for a clinician's judgement and "
    "must not be used for a patient."
)


def summarise_diagnoses(
    records: Sequence[Record],
    *,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
) -> dict[str, Any]:
    """Builds `summary.json` of a diagnosis run.

    Args:
        records: Rows of `records.jsonl`.
        seed: Seed of the resamples.
        resamples: Resamples of cases behind each interval.
        method: Kind of interval.

    Returns:
        Plain data without NaN: `n`, `cases`, `diseases` (of the knowledge task), `repeats`, `methods`, `stages` (the
        knowledge task last), `scores` and `without_leaks` (per stage, method and unit; units of knowledge are its
        dimensions), `leaks` (cases by stage), `differences` (paired), `groups` (the paper's tests), `agreement` (of
        repeats, or None), `grader`, `discussion` (by stage), `usage` (per stage and method, by role),
        `unscored_rate`, `models`, `label_banner`, `seconds`, `seed`, `resamples`, `method`.
    """
    visits = [record for record in records if record["stage"] != KNOWLEDGE]
    asked = [record for record in records if record["stage"] == KNOWLEDGE]
    grids = [Grid(part) for part in (visits, asked) if part]  # diseases are no cases: each has resamples of its own
    how: dict[str, Any] = {"seed": seed, "resamples": resamples, "method": method}
    stages = [stage for grid in grids for stage in grid.stages]
    methods = list(dict.fromkeys(method for grid in grids for method in grid.methods))
    outcomes = [outcome for record in records for outcome in final_outcomes(record).values()]
    models = _models(records)
    return {
        "system": "diagnosis",
        "n": len(records),
        "cases": len({record["case_id"] for record in visits}),
        "diseases": len({record["case_id"] for record in asked}),
        "repeats": max((len(grid.repeats) for grid in grids), default=0),
        "methods": methods,
        "stages": stages,
        **_joined([score_places(grid, **how) for grid in grids], ("scores", "without_leaks")),
        "leaks": {
            s: len({r["case_id"] for r in visits if r["stage"] == s and r.get("leak")})
            for s in stages
            if s != KNOWLEDGE
        },
        "differences": [row for grid in grids for row in compare_methods(grid, **how)],
        "groups": {stage: found for grid in grids for stage, found in differences_of_groups(grid).items()},
        "agreement": _agreement(grids, seed=seed, resamples=resamples),
        "grader": grader_quality(records),
        "discussion": {s: _discussion([r for r in records if r["stage"] == s and r["turns"]]) for s in stages},
        "usage": {s: {m: _usage(_at(records, s, m)) for m in methods} for s in stages},
        "unscored_rate": sum(o != "scored" for o in outcomes) / len(outcomes) if outcomes else None,
        "models": models,
        "label_banner": _banner(models),
        "seconds": sum(record.get("seconds") or 0.0 for record in records),
        **how,
    }


def _leaks(records: Sequence[Record], stage: str) -> int:
    return len({record["case_id"] for record in records if record["stage"] == stage and record.get("leak")})


def _joined(parts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    return {name: {stage: found for part in parts for stage, found in part[name].items()} for name in names}


def _agreement(grids: Sequence[Grid], **how: Any) -> dict[str, Any] | None:
    found = [agreement for grid in grids if (agreement := agreement_of_repeats(grid, **how)) is not None]
    return {stage: methods for part in found for stage, methods in part.items()} if found else None


def _at(records: Sequence[Record], stage: str, method: str) -> list[Record]:
    return [record for record in records if record["stage"] == stage and record["method"] == method]


def _models(records: Sequence[Record]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        for role, model in (record.get("models") or {}).items():
            found.setdefault(role, set()).add(str(model))
    return {role: sorted(models) for role, models in found.items()}


def _banner(models: Mapping[str, Sequence[str]]) -> str | None:
    named = " ".join(model for role in models.values() for model in role).lower()
    return EMBEDDED_BANNER if "smollm2-135m" in named else None


def _usage(records: Sequence[Record]) -> dict[str, Any]:
    """Returns usage by role, in all, without the grader, and per case: what a method costs is not what grading does."""
    roles: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for role, used in record["usage"].items():
            roles.setdefault(role, []).append(used)
    own = [used for role, found in roles.items() if role != "grader" for used in found]
    spent = total_usage(own)
    by_role = {role: total_usage(found) for role, found in roles.items()}
    return {"roles": by_role, "method": spent, "per_case": per_case(spent, len(records)), "n": len(records)}


def _discussion(records: Sequence[Record]) -> dict[str, Any] | None:
    """Returns how the panel's discussions went; None where there was none."""
    if not records:
        return None
    turns = [turn for record in records for turn in record["turns"]]
    ends = [found for r in records if (found := kept_standing(r)) is not None]
    moved = [len(dict.fromkeys(t["most_likely"] for t in r["turns"] if t["most_likely"])) for r in records]
    return {
        "n": len(records),
        "turns": fmean(len(record["turns"]) for record in records),
        "rounds": fmean(record["rounds"] for record in records),
        "stopped": dict(Counter(record["stopped"] for record in records)),
        "unreadable_turns": sum(turn["outcome"] != "scored" for turn in turns),
        "all_turns": len(turns),
        "contradicted_consensus": sum(one["contradicted"] for one in ends),
        "doctors_differ": sum(one["consensus"] and one["differ"] for one in ends),
        "outcome_unheld": sum(bool(one["unheld"]) for one in ends),
        "refused_consensus": sum(bool(turn["consensus"]) and not turn["accepted"] for turn in turns),
        "diagnoses_named": fmean(moved),
        "speakers": dict(Counter((turn.get("selection") or {}).get("by", "order") for turn in turns)),
        "cut_prompts": sum(len(record["cuts"]) for record in records),
    }


def diagnosis_metrics(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns a summary's numbers under names such as `primary/mac/most_likely/accuracy`."""
    out: dict[str, float | None] = {"unscored_rate": summary["unscored_rate"], "seconds": summary["seconds"]}
    for name, prefix in (("scores", ""), ("without_leaks", "without_leaks/")):
        for stage, methods in summary[name].items():
            for method, units in methods.items():
                for unit, score in units.items():
                    key = f"{prefix}{stage}/{method}/{unit}"
                    out[f"{key}/accuracy"] = score["value"]
                    out[f"{key}/accuracy_low"], out[f"{key}/accuracy_high"] = score["ci95"] or (None, None)
                    out[f"{key}/mean_level"] = score["mean_level"]
    for stage, methods in summary["usage"].items():
        for method, used in methods.items():
            for measure in ("prompt_tokens", "completion_tokens", "cost", "calls"):
                out[f"{stage}/{method}/{measure}_per_case"] = used["per_case"][measure]
    for stage, found in summary["discussion"].items():
        if found:
            out[f"{stage}/mac/consensus_contradicted"] = found["contradicted_consensus"]
            out[f"{stage}/mac/outcome_unheld"] = found["outcome_unheld"]
    for stage, methods in (summary["agreement"] or {}).items():
        for method, units in methods.items():
            for unit, found in units.items():
                out[f"{stage}/{method}/{unit}/kappa"] = found["levels"]["kappa"]
    return out
