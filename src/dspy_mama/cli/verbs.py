"""The verbs, by name; to add one, write a `Verb` and name it here."""

from __future__ import annotations

from typing import Final

from dspy_mama.cli.audit import AUDIT
from dspy_mama.cli.doctor import DOCTOR
from dspy_mama.cli.evaluate import DEMO, EVALUATE
from dspy_mama.cli.index import INDEX
from dspy_mama.cli.report import REPORT
from dspy_mama.cli.verb import Verb

VERBS: Final[dict[str, Verb]] = {
    "demo": DEMO,
    "audit": AUDIT,
    "evaluate": EVALUATE,
    "index": INDEX,
    "report": REPORT,
    "doctor": DOCTOR,
}
