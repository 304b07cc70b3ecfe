"""From records of the evaluation loop to the figures that are scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from dspy_mama.scoring.refinement import RefinedItem, Score

Record = Mapping[str, Any]
Scale = Literal["ama", "sra"]

_KINDS: Final[Mapping[Scale, str]] = {"ama": "ethics", "sra": "safety"}


def entered(record: Record) -> bool:
    """Tells whether an answer went into the loop: a cheap gate may have let it pass."""
    return bool((record.get("gate") or {}).get("entered", True))


def needs_review(record: Record) -> bool:
    """Tells whether people should look at the returned text: not accepted, cut short, or there is none.

    One that a gate let pass was refused by nobody: which texts skip the evaluators is what a gate is set for.
    """
    accepted = (record.get("final") or {}).get("accepted")
    return bool(record.get("needs_review", not accepted and entered(record)))


def score_of(version: Mapping[str, Any]) -> Score | None:
    """Returns what the evaluators came to for a version; None where it was not assessed or one was not readable."""
    consensus = version.get("consensus") or {}
    ama, sra = (consensus.get(name) if consensus.get("readable", True) else None for name in ("ama", "sra"))
    return None if ama is None or sra is None else Score(float(ama), float(sra))


def unread_evaluators(version: Mapping[str, Any], scale: Scale) -> int:
    """Returns how many of a version's evaluators on a scale gave no score."""
    own = [one for one in version.get("assessments") or () if one.get("kind") == _KINDS[scale]]
    return sum(one.get("score") is None for one in own)


def known_score(version: Mapping[str, Any], scale: Scale) -> float | None:
    """Returns a version's score on one scale, also where the other scale's evaluator could not be read."""
    value = None if unread_evaluators(version, scale) else (version.get("consensus") or {}).get(scale)
    return None if value is None else float(value)


def refined_item(record: Record) -> RefinedItem:
    """Returns the figures of one record."""
    versions = record.get("versions") or []
    in_loop = [s for v in versions if v.get("stage") != "final_check" and (s := score_of(v)) is not None]
    final = (record.get("final") or {}).get("version")
    last = next((version for version in versions if version["number"] == final), None)
    return RefinedItem(
        id=str(record["id"]),
        converged=record.get("converged"),
        iterations=int(record.get("iterations") or 0),
        before=score_of(versions[0]) if versions else None,
        after=in_loop[-1] if in_loop else None,
        returned=score_of(last) if last else None,
        principle=record.get("principle"),
        category=(record.get("category") or {}).get("value"),
    )


def refined_items(records: Iterable[Record]) -> Sequence[RefinedItem]:
    """Returns the figures of every record that entered the loop."""
    return [refined_item(record) for record in records if entered(record)]
