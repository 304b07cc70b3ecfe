"""What a run of the evaluation loop says in numbers: `summary.json`, from records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dspy_mama.reporting.refinement_estimates import loop_summary, share
from dspy_mama.reporting.summary import label_banner
from dspy_mama.reporting.usage import total_usage
from dspy_mama.scoring.refinement_records import entered, needs_review, refined_items
from dspy_mama.stats.intervals import Method

Record = Mapping[str, Any]

END_STATES: Final = ("refusal", "vague", "incomplete", "oscillating", "hugging")
"""What scores do not show: only a refusal, too vague to help, cut short, swaying, or just at a threshold."""

NO_SUBSTITUTE: Final = (
    "The evaluators are language models. Text that they accept is no substitute for a clinician's decision, for legal "
    "advice, or for the risk management that a medical device requires."
)


def summarise_loop(
    records: Sequence[Record], *, seed: int = 0, resamples: int = 1000, method: Method = "percentile"
) -> dict[str, Any]:
    """Builds `summary.json` of a run of the evaluation loop.

    Args:
        records: Rows of `records.jsonl`.
        seed: Seed of the resamples.
        resamples: Resamples behind each bootstrap interval.
        method: Kind of bootstrap interval.

    Returns:
        Plain data without NaN: what `loop_summary` gives, and `needs_review` (returned texts), `passed_by_gate`,
        `outcomes`, `stopped`, `end_states`, `warnings`, `truncated` (versions cut at the token limit), `criteria`,
        `usage` by role and in total, `models`, `label_banner`, `seconds`, `seed`, `resamples` and `method`.
    """
    inside = [record for record in records if entered(record)]
    allowed = max([1, *(int(record.get("max_iterations") or 1) for record in inside)])
    models = _models(records)
    return {
        "system": "refine",
        **loop_summary(refined_items(records), max_iterations=allowed, seed=seed, resamples=resamples, method=method),
        "needs_review": sum(map(needs_review, records)),
        "passed_by_gate": len(records) - len(inside),
        "outcomes": _counts(outcome for record in inside for outcome in (record.get("outcomes") or {}).values()),
        "stopped": _counts(record.get("stopped") for record in inside),
        "end_states": {name: _state(inside, name) for name in END_STATES},
        "warnings": _counts(warning for record in records for warning in record.get("warnings") or ()),
        "truncated": sum(bool(v.get("truncated")) for record in inside for v in record.get("versions") or ()),
        "criteria": _counts(_criteria(record) for record in records),
        "usage": usage_by_role(records),
        "models": models,
        "label_banner": label_banner(models),
        "seconds": sum(record.get("seconds") or 0.0 for record in records),
        "seed": seed,
        "resamples": resamples,
        "method": method,
    }


def _counts(values: Iterable[Any]) -> dict[str, int]:
    return dict(Counter(str(value) for value in values if value is not None).most_common())


def _criteria(record: Record) -> str | None:
    own = record.get("criteria") or {}
    return f"{own['name']} {own.get('version', '')}".strip() if own.get("name") else None


def _state(records: Sequence[Record], name: str) -> dict[str, Any]:
    """Returns how many returned texts are in an end state, of those that could be told."""
    known = [own for record in records if (own := (record.get("end_states") or {}).get(name)) is not None]
    return share(sum(map(bool, known)), len(known))


def _models(records: Sequence[Record]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        for role, model in (record.get("models") or {}).items():
            if model:
                found.setdefault(role, set()).add(str(model))
    return {role: sorted(models) for role, models in found.items()}


def usage_by_role(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Returns the usage of each role that was asked, in order of appearance, and of all together under `total`."""
    roles: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for role, usage in (record.get("usage") or {}).items():
            roles.setdefault(role, []).append(usage)
    out = {role: total_usage(usages) for role, usages in roles.items()}
    return out | {"total": total_usage([usage for usages in roles.values() for usage in usages])}


def loop_metrics(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns the numbers of a summary by name, as a tracker logs them; bounds end in `_low` and `_high`."""
    out: dict[str, float | None] = {name: summary[name] for name in ("n", "scored", "unscored", "failed", "truncated")}
    for name, own in summary["overall"].items():
        _add(out, name, own)
    for name in ("reduction", "downgrade"):
        _add(out, f"final_check/{name}", (summary["final_check"] or {}).get(name) or {})
    for key, own in summary["principles"].items():
        _add(out, f"principle/{key}/mean_iterations", own["mean_iterations"])
    for key, own in summary["categories"].items():
        for name in ("before", "after", "velocity"):
            _add(out, f"category/{key}/{name}", own[name])
    for level, sides in summary["levels"].items():
        for side, own in sides.items():
            _add(out, f"level/{level}/{side}", own)
    for name, own in summary["end_states"].items():
        _add(out, f"end_state/{name}", own)
    for role, used in summary["usage"].items():
        out |= {f"usage/{role}/{name}": used[name] for name in used if name != "unknown"}
    return out


def _add(out: dict[str, float | None], name: str, own: Mapping[str, Any]) -> None:
    if not own:
        return
    out[name] = own["value"]
    if own.get("ci95"):
        out[f"{name}_low"], out[f"{name}_high"] = own["ci95"]
