"""What a reader of the scores should know, from a record: a record that was completed later says it anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dspy_mama.systems.refine.parts import final_part, gate_part, version_part
from dspy_mama.systems.refine.schema import Refinement

Part = Mapping[str, Any]


def warnings(refinement: Refinement) -> list[str]:
    """Returns the warnings of a refinement (see `record_warnings`)."""
    final, versions = refinement.final, refinement.versions
    return record_warnings(
        {
            "versions": [version_part(version, versions, final is version) for version in versions],
            "gate": gate_part(refinement),
            "stopped": refinement.stopped,
            "final": final_part(final),
            "sampling_not_sent": refinement.not_sent,
        }
    )


def record_warnings(record: Mapping[str, Any]) -> list[str]:
    """Returns what a reader of a record's scores should know, one line each.

    Args:
        record: `versions`, `gate`, `stopped`, `final` and `sampling_not_sent` are read; texts need not be there.
    """
    versions, returned = record["versions"], record["final"] or {}
    final = next((own for own in versions if own["number"] == returned.get("version")), None)
    unassessed = record["stopped"] == "budget" and not returned.get("assessed")
    return [
        *_same_models(versions),
        *_cut(versions, final),
        *_unread(versions, record["stopped"]),
        *_not_sent(record.get("sampling_not_sent") or {}),
        *(
            ["a plan could not be read; the evaluators' reasons stood in for it"]
            if any(own["plan_outcome"] not in (None, "scored") for own in versions)
            else []
        ),
        *(
            ["the gate could not be read; the text was evaluated in full"]
            if (record.get("gate") or {}).get("outcome", "scored") != "scored"
            else []
        ),
        *(["the returned text is the last revision and was not assessed"] if unassessed else []),
    ]


def _all(versions: Sequence[Part]) -> Iterator[Part]:
    for version in versions:
        yield version
        yield from version["rivals"]


def _same_models(versions: Sequence[Part]) -> list[str]:
    """Returns where one model does what several should: judges what it wrote, or writes for several generators."""
    writers: dict[str, set[str]] = {}
    for own in _all(versions):
        if own["model"]:
            writers.setdefault(own["model"], set()).add(own["generator"])
    judges = {one["model"] for own in _all(versions) for one in own["assessments"] if one["model"]}
    found = []
    if both := sorted(set(writers) & judges):
        found.append(f"generator and evaluator are the same model ({', '.join(both)}): it judges what it wrote itself")
    for model, names in sorted(writers.items()):
        if len(names) > 1:
            found.append(f"{', '.join(sorted(names))} are the same model ({model}): their texts differ by chance alone")
    return found


def _cut(versions: Sequence[Part], final: Part | None) -> list[str]:
    found = []
    if any(own["truncated"] for own in _all(versions)):
        found.append("a text was cut at the token limit: give the generator more tokens, or a shorter reply_characters")
    if final is not None and final["incomplete"]:
        found.append("the returned text breaks off at the token limit: needs review")
    if any(one["truncated"] for own in _all(versions) for one in own["assessments"]):
        found.append("an assessment was cut at the token limit: give the evaluator more tokens")
    return found


def _unread(versions: Sequence[Part], stopped: str) -> list[str]:
    """Returns which assessments are missing: of the last one, and of those before, after which the loop went on."""
    assessed = [own for own in versions if own["assessments"] and own["stage"] == "loop"]
    found = []
    for own in assessed[: -1 if stopped in ("budget", "unreadable") else None]:
        missing = [f"{one['evaluator']} ({one['outcome']})" for one in own["assessments"] if one["outcome"] != "scored"]
        if missing:
            found.append(f"version {own['number']} was not judged by {', '.join(missing)}, so it could not be accepted")
    last = assessed[-1]["consensus"] if assessed else None
    if stopped == "budget" and last and not last["readable"]:
        found.append("an evaluator could not be read; what the others found refuses the text whatever it would say")
    return found


def _not_sent(refused: Mapping[str, Mapping[str, Any]]) -> list[str]:
    if not refused:
        return []
    asked = ", ".join(sorted({name for own in refused.values() for name in own}))
    return [f"models that refuse {asked} were asked without: {', '.join(refused)}; their own settings held"]
