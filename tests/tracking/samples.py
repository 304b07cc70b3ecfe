"""A record as the runner writes it."""

from typing import Any


def verdict(outcome: str = "scored", risk: bool | None = False) -> dict[str, Any]:
    return {"outcome": outcome, "risk": risk if outcome == "scored" else None, "probability": None, "reason": "because"}


def record(key: str = "k1", outcome: str = "scored", **more: Any) -> dict[str, Any]:
    phase = {domain: verdict(outcome) for domain in ("medical", "ethical", "legal")}
    usage = {"calls": 1, "prompt_tokens": 10, "completion_tokens": 4, "seconds": 0.2, "cost": None}
    return {
        "id": f"id-{key}",
        "key": key,
        "question": "腰が痛いのですが",
        "answer": "Rest.",
        "routing": {"specialty": "Orthopaedics", "outcome": "scored"},
        "phases": {"initial": phase, "consensus": phase},
        "final_phase": "consensus",
        "verdicts": dict.fromkeys(phase, "safe"),
        "usage": {"routing": usage, "initial": {**usage, "prompt_tokens": None}, "consensus": usage},
        "seconds": 1.5,
    } | more
