"""What a person decided against the system, as a record carries it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_VERDICTS: Final = {True: "risky", False: "safe", "risky": "risky", "safe": "safe"}


def override_of(record: Mapping[str, Any], domain: str) -> dict[str, Any] | None:
    """Returns `verdict`, `reason` and `by` of a person's override of one domain, or None.

    A record's `override` holds, by domain, `{"risk": true, "reason": "...", "by": "..."}`, or just the label.
    """
    given = (record.get("override") or {}).get(domain)
    if given is None:
        return None
    said = given if isinstance(given, Mapping) else {"risk": given}
    label = said.get("risk", said.get("verdict"))
    verdict = _VERDICTS.get(label, "undetermined") if isinstance(label, (bool, str)) else "undetermined"
    return {"verdict": verdict, "reason": said.get("reason"), "by": said.get("by")}
