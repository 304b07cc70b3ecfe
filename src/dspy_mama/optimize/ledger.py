"""Who looked at a test set: a second look is allowed, and never silent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.stratified import pairs_hash


def note_look(ledger: Path | None, test: Sequence[QAPair], by: str) -> int:
    """Writes down that a compilation looks at test pairs.

    Args:
        ledger: The file, a line a look; None = nothing is kept.
        test: The pairs.
        by: Who looks, such as a run folder's name; the same one looking again (a resumed run) counts once.

    Returns:
        How many others looked at these pairs before.

    Raises:
        DeclarationError: The file cannot be read or written.
    """
    if ledger is None or not test:
        return 0
    key = pairs_hash(test)
    try:
        ledger.parent.mkdir(parents=True, exist_ok=True)
        lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
        looks = [json.loads(line) for line in lines if line.strip()]
        before = {look["by"] for look in looks if look["test"] == key} - {by}
        if not any(look["test"] == key and look["by"] == by for look in looks):
            look = {"test": key, "by": by, "pairs": len(test), "at": datetime.now(UTC).isoformat(timespec="seconds")}
            with ledger.open("a", encoding="utf-8") as file:
                file.write(json.dumps(look) + "\n")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DeclarationError(f"{ledger}: the ledger of test sets cannot be used ({error!r})") from error
    return len(before)
