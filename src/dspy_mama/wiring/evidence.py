"""A run on disk to the diagnosis of its evidence."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Scored
from dspy_mama.lm.roles import build_lms
from dspy_mama.lm.usage import total
from dspy_mama.reporting.evidence import evidence_effect, retrieval_facts
from dspy_mama.settings import Settings
from dspy_mama.systems.audit.citation_check import SUPPORT_SCALE, CitationChecker, CitationSupport
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.rebuild import require_audit

Records = Sequence[Mapping[str, Any]]


def load_records(run: str, root: str = "mlruns") -> Records:
    """Returns the records of a run.

    Args:
        run: Its folder, or its name below the tracking root.
        root: Tracking root.

    Raises:
        DeclarationError: It is no run, or holds no record.
    """
    inside = Path(root, "runs", run)
    folder = inside if not Path(run).exists() and inside.is_dir() else Path(run)
    records: Records = RunStore.open(folder).records()
    if not records:
        raise DeclarationError(f"{folder}: holds no record; run the audit first")
    require_audit(records, str(folder), "evidence")
    return records


def diagnose_evidence(records: Records, without: Records | None = None) -> dict[str, Any]:
    """Returns `retrieval` and, beside a run without evidence, its `effect`; needs no LM.

    Raises:
        DeclarationError: The runs share no pair.
    """
    effect = evidence_effect(records, without) if without is not None else None
    return {"n": len(records), "retrieval": retrieval_facts(records), "effect": effect}


@dataclass(frozen=True, slots=True)
class _Citation:
    domain: str
    note: str
    passage: str


async def check_citations(records: Records, settings: Settings) -> dict[str, Any]:
    """Asks the judge's LM of every citation whether the passage supports the note.

    Args:
        records: Records of a run; its notes are read from there, the passages' texts from the corpus.
        settings: Their `corpus`, `lm` (role `judge`) and `runtime.concurrency`.

    Returns:
        Per domain the citations `checked`, their `verdicts`, `unscored` ones, and `supported_share` (supports or
        partly, of the scored ones; null without any); `missing` = cited passages whose text the corpus no longer has.

    Raises:
        DeclarationError: The corpus or the LM's configuration is at fault.
    """
    import dspy

    from dspy_mama.retrieval.build import corpus_entries

    texts = {id: entry.passage.text for id, entry in corpus_entries(settings.corpus).items()}
    cited = [citation for record in records for citation in _citations(record)]
    known = [_Citation(domain, note, texts[id]) for domain, note, id in cited if id in texts]
    lms = build_lms(settings.lm)
    checker = CitationChecker(lms.get("judge", lms["default"]))
    places = asyncio.Semaphore(settings.runtime.concurrency)

    async def one(citation: _Citation) -> CitationSupport:
        async with places:
            return await checker.aforward(citation.note, citation.passage)

    # DSPy's history keeps whole prompts of patients' texts in memory.
    with dspy.context(disable_history=True):
        found = await asyncio.gather(*map(one, known))
    by_domain = {
        domain: _support([s for c, s in zip(known, found, strict=True) if c.domain == domain]) for domain in DOMAINS
    }
    return {
        "scale": list(SUPPORT_SCALE),
        "by_domain": by_domain,
        "missing": len(cited) - len(known),
        "usage": total(support.usage for support in found).to_dict(),
        "models": sorted({support.model for support in found if support.model}),
    }


def _citations(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    checks = (record.get("phases") or {}).get("verification") or {}
    return [
        (domain, check["reason"], id)
        for domain, check in checks.items()
        if check.get("reason")
        for id in check.get("citations") or ()
    ]


def _support(found: Sequence[CitationSupport]) -> dict[str, Any]:
    scored = [support.outcome.value for support in found if isinstance(support.outcome, Scored)]
    good = sum(verdict in ("supports", "partly") for verdict in scored)
    return {
        "checked": len(found),
        "verdicts": dict(Counter(scored)),
        "unscored": len(found) - len(scored),
        "supported_share": good / len(scored) if scored else None,
    }
