"""What becomes of a pair that could not be audited: a record that says so, never a missing row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dspy_mama.core.cases import DOMAINS, Phase, QAPair
from dspy_mama.core.errors import DeclarationError, MamaError
from dspy_mama.core.record_texts import without_words
from dspy_mama.runtime.keys import pair_key
from dspy_mama.tracking import scrub_text

TEXTS: Final = ("question", "answer", "notes")
"""Fields that a record has only where texts are stored."""

_WORDS: Final = ("reason", "findings", "raw")
"""Fields of a verdict that hold words of the LM."""

_REASON_LIMIT: Final = 500


def root_cause(error: BaseException) -> BaseException:
    """Returns the error itself, or of a group (calls made side by side) the one that matters most.

    A declaration error comes before all others: it stops the run.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [root_cause(inner) for inner in error.exceptions]
    return next((cause for cause in causes if isinstance(cause, DeclarationError)), causes[0])


def describe(error: BaseException) -> str:
    """Returns an error as one line without secrets; its type is named where the message is not ours."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else "no message"
    named = text if isinstance(error, MamaError) else f"{type(error).__name__}: {text}"
    return scrub_text(named)[:_REASON_LIMIT]


def identity(pair: QAPair, repeat: int, store_text: bool) -> dict[str, Any]:
    """Returns the part of a record that comes from the pair itself.

    Args:
        pair: The pair.
        repeat: 0-based index of the repeat.
        store_text: Keep question, answer and the experts' notes.
    """
    notes = {str(domain): note for domain, note in pair.notes.items()}
    texts: dict[str, Any] = dict(zip(TEXTS, (pair.question, pair.answer, notes), strict=True))
    return {
        "id": pair.id,
        "key": pair_key(pair, repeat),
        "source": pair.source,
        "language": pair.language,
        "repeat": repeat,
        **(texts if store_text else {}),
        "gold": {domain: pair.gold.get(domain) for domain in DOMAINS},
    }


def without_texts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record without question, answer and notes, and without the LM's words, which may quote them.

    Labels, probabilities and citations stay; a blank query still tells that there was a search.
    """
    kept = {name: value for name, value in record.items() if name not in TEXTS}
    if kept.get("routing"):
        kept["routing"] = without_words(kept["routing"], ("definition", "source"))
    if "phases" in kept:
        kept["phases"] = {
            phase: {domain: _bare(verdict) for domain, verdict in verdicts.items()}
            for phase, verdicts in kept["phases"].items()
        }
    return kept


def _bare(verdict: Mapping[str, Any]) -> dict[str, Any]:
    bare = without_words(verdict, _WORDS)
    return {**bare, "query": ""} if verdict.get("query") is not None else bare


def failure_record(
    pair: QAPair, error: BaseException, *, repeat: int = 0, final_phase: Phase = "consensus", store_text: bool = True
) -> dict[str, Any]:
    """Returns the record of a pair whose audit failed: every verdict `infra`, so that a resumed run tries it again.

    Args:
        pair: The pair.
        error: What went wrong.
        repeat: 0-based index of the repeat.
        final_phase: Phase whose verdicts count in this run.
        store_text: Keep question, answer and the experts' notes.
    """
    verdict = {
        "outcome": "infra",
        "risk": None,
        "probability": None,
        "probability_source": "none",
        "reason": None,
        "findings": None,
        "error": describe(error),
        "raw": None,
    }
    return {
        **identity(pair, repeat, store_text),
        "routing": None,
        "phases": {final_phase: {domain: dict(verdict) for domain in DOMAINS}},
        "final_phase": final_phase,
        "verdicts": dict.fromkeys(DOMAINS, "undetermined"),
        "needs_review": True,
        "usage": {},
        "models": {},
    }
