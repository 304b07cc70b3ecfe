"""One record of the evaluation loop as its page shows it: every value that the template prints is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from dspy_mama.reporting.refinement import END_STATES
from dspy_mama.reporting.refinement_published import PRINCIPLE_NAMES
from dspy_mama.reporting.tables import NONE
from dspy_mama.reporting.word_diff import Piece, word_diff
from dspy_mama.scoring.refinement_records import Scale, entered, needs_review, refined_item, unread_evaluators

Record = Mapping[str, Any]

STATE_WORDS: Final = {
    "refusal": "only a refusal",
    "vague": "too vague to help",
    "incomplete": "breaks off at the token limit",
    "oscillating": "swaying between versions",
    "hugging": "just at a threshold",
}
"""End states as a reader sees them."""

_LONG: Final = 900
_ENDS: Final = 250
"""Characters from which an unchanged stretch is shortened, and what is kept of each of its ends."""

_STOPPED: Final = {
    "accepted": "Both thresholds were met.",
    "budget": "The iterations were used up before both thresholds were met.",
    "unreadable": "An evaluator could not be read, also when asked again: the answer is not taken as safe.",
    "generation": "No further text could be had from the generator.",
    "gate": "The gate let the answer pass: it did not enter the loop and no evaluator judged it.",
}


def shown_score(value: float | None) -> str:
    """Returns a score without needless digits, or a dash where there is none."""
    return NONE if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _shown(version: Mapping[str, Any], scale: Scale) -> str:
    """Returns a version's score as far as it could be read: what one evaluator refuses, another must not hide."""
    value = (version.get("consensus") or {}).get(scale)
    unread = unread_evaluators(version, scale)
    return shown_score(value) + (f" ({unread} unread)" if value is not None and unread else "")


def _decision(version: Mapping[str, Any]) -> str:
    """Returns in words what the evaluators came to."""
    own = version.get("consensus") or {}
    if version.get("outcome", "scored") != "scored":
        return f"no text ({version['outcome']}): {version.get('error') or ''}"
    if not version.get("assessments"):
        return "not assessed"
    if own.get("accepted"):
        return "accepted"
    if not own.get("readable", True) and not own.get("refused"):
        return "could not be judged, so not accepted"
    if version.get("stage") == "final_check":
        return "not accepted"
    return "refine (mandatory)" if own.get("mandatory") else "refine"


def view_of(record: Record) -> dict[str, Any]:
    """Shapes one record for the template."""
    item = refined_item(record)
    versions = record.get("versions") or []
    after = item.returned or item.after
    first, last = _ends(record)
    steps = _steps(versions)
    return {
        "id": f"{record['id']}" + (f" (repeat {record['repeat']})" if record.get("repeat") else ""),
        "language": record.get("language") or "",
        "turns": _turns(record),
        "question": _asked(record),
        "principle": item.principle or "",
        "principle_name": PRINCIPLE_NAMES.get(item.principle or "", ""),
        "category": item.category or "",
        "status": status_of(record),
        "stopped": _STOPPED.get(str(record.get("stopped")), str(record.get("stopped") or "")),
        "iterations": item.iterations,
        "ama": [_shown(first, "ama"), _shown(last, "ama")],
        "sra": [_shown(first, "sra"), _shown(last, "sra")],
        "gain": (item.before.ama - after.ama) if item.before and after else 0,
        "states": [STATE_WORDS[name] for name in END_STATES if (record.get("end_states") or {}).get(name)],
        "needs_review": needs_review(record),
        "warnings": list(record.get("warnings") or ()),
        "gate": record.get("gate"),
        "helpfulness": _helpfulness(record.get("helpfulness")),
        "error": record.get("error"),
        "versions": [_version(version) for version in versions],
        "steps": steps,
        "shortened": any(piece["change"] == "left out" for step in steps for piece in (*step["old"], *step["new"])),
        "whole": _whole(record),
        "texts": _texts(versions),
        "cost": _cost(record),
        "models": dict(record.get("models") or {}),
    }


def _ends(record: Record) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Returns the first version and the last one that was judged, both empty where there is none."""
    versions = record.get("versions") or ()
    judged = [version for version in versions if version.get("consensus")]
    return (versions[0] if versions else {}), (judged[-1] if judged else {})


def status_of(record: Record) -> str:
    """Returns `converged`, `not converged`, `unscored` or `passed by the gate`."""
    if not entered(record):
        return "passed by the gate"
    return {True: "converged", False: "not converged"}.get(record.get("converged"), "unscored")  # type: ignore[arg-type]


def _helpfulness(own: Mapping[str, Any] | None) -> str:
    """Returns in words whether the returned text helps; "" where it was not asked."""
    if not own:
        return ""
    if own.get("outcome") != "scored":
        return f"Help: could not be told ({own.get('outcome')})."
    said = [STATE_WORDS[name] for name in ("refusal", "vague") if own.get(name)] or ["neither a mere refusal nor vague"]
    return f"Help: {' and '.join(said)}. {own.get('reason') or ''}".strip()


def _turns(record: Record) -> list[dict[str, str]]:
    """Returns the conversation before the last question, where there is one."""
    turns = record.get("history") or ()
    return [{"speaker": str(turn.get("speaker", "")), "text": str(turn.get("text", ""))} for turn in turns]


def _asked(record: Record) -> str | None:
    question = record.get("question")
    return None if question is None else str(question)


def _version(version: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "number": version["number"],
        "origin": version.get("origin") or "",
        "stage": version.get("stage") or "loop",
        "model": version.get("model") or "",
        "truncated": bool(version.get("truncated")),
        "incomplete": bool(version.get("incomplete")),
        "outcome": version.get("outcome") or "scored",
        "error": version.get("error"),
        "text": version.get("text"),
        "ama": _shown(version, "ama"),
        "sra": _shown(version, "sra"),
        "assessed": bool(version.get("assessments")),
        "accepted": (version.get("consensus") or {}).get("accepted"),
        "decision": _decision(version),
        "assessments": [_assessment(own) for own in version.get("assessments") or ()],
        "same_as": version.get("same_as"),
        "plan": [str(step) for step in version.get("plan") or ()],
        "plan_failed": version.get("plan_outcome") not in (None, "scored"),
        "rivals": [_rival(rival) for rival in version.get("rivals") or ()],
    }


def _rival(version: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what is shown of a candidate that did not go on."""
    return {
        "generator": version.get("generator") or "",
        "model": version.get("model") or "",
        "ama": _shown(version, "ama"),
        "sra": _shown(version, "sra"),
        "text": version.get("text"),
    }


def _assessment(own: Mapping[str, Any]) -> dict[str, Any]:
    flags = [flag for flag in own.get("flags") or () if flag.get("violated")]
    return {
        "evaluator": own.get("evaluator") or own.get("kind") or "",
        "kind": own.get("kind") or "",
        "model": own.get("model") or "",
        "outcome": own.get("outcome") or "scored",
        "score": shown_score(own.get("score")),
        "flags": [{"name": _flag_name(flag), "reason": flag.get("reason") or ""} for flag in flags],
        # An ethics evaluator's reason is the reasons of its flags, which are shown one by one.
        "reason": "" if flags else own.get("reason") or "",
        "evidence": [_source(passage) for passage in own.get("evidence") or ()],
        "error": own.get("error"),
        "raw": own.get("raw"),
    }


def _flag_name(flag: Mapping[str, Any]) -> str:
    return ". ".join(str(flag[name]) for name in ("principle", "name") if flag.get(name))


def _source(passage: Mapping[str, Any]) -> str:
    """Returns a cited passage in one line."""
    facts = (passage.get(name) for name in ("title", "section", "url", "accessed"))
    return ", ".join(str(fact) for fact in facts if fact) or str(passage.get("id") or "")


def _steps(versions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns each change of the text with what was found and planned before; none without stored texts."""
    steps = []
    for earlier, later in pairwise(versions):
        if later.get("same_as") is not None or (change := _change(earlier, later)) is None:
            continue
        found = f"AMA {_shown(earlier, 'ama')}, SRA {_shown(earlier, 'sra')}: {_decision(earlier)}"
        reasons = list((earlier.get("consensus") or {}).get("reasons") or ())
        steps.append({**change, "found": found, "reasons": reasons, "plan": list(earlier.get("plan") or ())})
    return steps


def _whole(record: Record) -> dict[str, Any] | None:
    """Returns the change from the first text to the returned one, where others lie between them."""
    versions = list(record.get("versions") or ())
    number = (record.get("final") or {}).get("version")
    last = next((own for own in versions if own["number"] == number), None)
    if last is None:
        return None
    between = {own.get("text") for own in versions} - {versions[0].get("text"), last.get("text")}
    return _change(versions[0], last) if between else None


def _change(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any] | None:
    if earlier.get("text") is None or later.get("text") is None:
        return None
    old, new = word_diff(earlier["text"], later["text"])
    return {"before": earlier["number"], "after": later["number"], "old": _mark(old), "new": _mark(new)}


def _texts(versions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns each text once, with the number of its version."""
    own = [version for version in versions if version.get("text") is not None and version.get("same_as") is None]
    return [{"number": version["number"], "text": version["text"]} for version in own]


def _mark(pieces: Sequence[Piece]) -> list[dict[str, str]]:
    """Returns the pieces of a text; of long stretches that are in both versions, their ends: a change must be seen."""
    shown: list[dict[str, str]] = []
    for piece in pieces:
        if piece.change != "same" or len(piece.text) <= _LONG:
            shown.append({"change": piece.change, "text": piece.text})
            continue
        left_out = len(piece.text) - 2 * _ENDS
        shown.append({"change": "same", "text": piece.text[:_ENDS]})
        shown.append({"change": "left out", "text": f"[{left_out:,} characters unchanged]"})
        shown.append({"change": "same", "text": piece.text[-_ENDS:]})
    return shown


def _cost(record: Record) -> str:
    used = list((record.get("usage") or {}).values())
    calls = sum(own.get("calls") or 0 for own in used)
    asked = [own for own in used if own.get("calls")]
    tokens = [own.get(name) for own in asked for name in ("prompt_tokens", "completion_tokens")]
    cost = [own.get("cost") for own in asked]
    parts = [
        f"{calls} calls",
        "tokens unknown" if None in tokens else f"{sum(t for t in tokens if t):,} tokens",
        f"{record.get('seconds') or 0:.1f} s",
        "cost unknown" if None in cost else f"cost {sum(c for c in cost if c):,.4f}",
    ]
    return ", ".join(parts)
