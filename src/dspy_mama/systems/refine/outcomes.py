"""Which parts of a refinement could be had, and which are asked for again by a resumed run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.systems.refine.schema import Refinement

_SCORES: Final = ("ama", "sra")


def kind_of(outcome: Outcome[Any]) -> str:
    """Returns `scored`, or the kind of what is missing."""
    return "scored" if isinstance(outcome, Scored) else outcome.kind


def outcomes(refinement: Refinement) -> dict[str, str]:
    """Returns whether the last assessment within the loop gave both scores, or why it did not."""
    if refinement.stopped == "gate":
        return {"gate": kind_of(refinement.gate.outcome) if refinement.gate else "scored"}
    last = refinement.versions[-1].draft.outcome
    if refinement.stopped == "generation" and isinstance(last, Unscored):
        return {"ama": last.kind, "sra": last.kind}
    found = refinement.assessed
    consensus = found.consensus if found else None
    if consensus is None:
        return {"ama": "parse", "sra": "parse"}
    stated = {name: (consensus.unscored[name].kind if name in consensus.unscored else "scored") for name in _SCORES}
    if "risk" in consensus.unscored:
        stated["risk"] = consensus.unscored["risk"].kind
    return {name: str(kind) for name, kind in stated.items()}


def missing_parts(refinement: Refinement) -> dict[str, Any]:
    """Returns under `retry` what failed on infrastructure, so that a resumed run asks for it again, and the `error`.

    The parts: `loop` (a score of the last assessment), `last_version` (its text, or the final check), `category` and
    `helpfulness`. A plan or a gate that failed is none: the loop went on without.
    """
    found: dict[str, str] = {}
    last = refinement.versions[-1]
    assessed = refinement.assessed
    if "infra" in outcomes(refinement).values():
        unscored = assessed.consensus.unscored.values() if assessed and assessed.consensus else ()
        failed = [own for own in (last.draft.outcome, *unscored) if kind_of(own) == "infra"]
        found["loop"] = _error(failed)
    elif refinement.stopped in ("budget", "unreadable") and last is not assessed:
        told = (last.draft.outcome, *(one.outcome for one in last.assessments))
        failed = [own for own in told if kind_of(own) == "infra"]
        found |= {"last_version": _error(failed)} if failed else {}
    for name, part in (("category", refinement.category), ("helpfulness", refinement.helpfulness)):
        if part is not None and kind_of(part.outcome) == "infra":
            found[name] = _error([part.outcome])
    return retry_part(found)


def retry_part(errors: Mapping[str, str]) -> dict[str, Any]:
    """Returns what a record says of parts that failed on infrastructure; nothing where there is none."""
    if not errors:
        return {}
    return {"retry": list(errors), "error": "; ".join(f"{name}: {error}" for name, error in errors.items())}


def _error(failed: Sequence[Outcome[Any]]) -> str:
    return next((own.reason for own in failed if isinstance(own, Unscored)), "failed on infrastructure")
