"""What evidence was asked for, found, used and cited in a run, and what it changed: the log that the paper lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dspy_mama.core import DOMAINS
from dspy_mama.core.errors import DeclarationError
from dspy_mama.stats import mcnemar_exact

Record = Mapping[str, Any]

_DOCUMENTS_SHOWN: Final = 20
"""Documents that a summary names; the rest is counted."""


def retrieval_facts(records: Sequence[Record]) -> dict[str, Any]:
    """Says how often evidence was found and used.

    Returns:
        Counts, and shares in [0, 1] (null where nothing was verified): `with_passages` of all verifications;
        `searched` = verifications with evidence switched on, `empty` = of those, without any passage, `hit_rate` = with
        one; `citation_rate` = verifications that cite a passage, of those that had one; the same `by_domain`; passages
        shown and cited by collection, language and document (the 20 most shown).
    """
    checks = [(domain, check) for record in records for domain, check in _verifications(record)]
    passages = [passage for _, check in checks for passage in check.get("passages") or ()]
    scores = [passage["score"] for passage in passages if passage.get("score") is not None]
    whole = _counts([check for _, check in checks])
    return {
        **whole,
        "with_passages_share": whole["with_passages"] / len(checks) if checks else None,
        "passages": len(passages),
        "mean_score": sum(scores) / len(scores) if scores else None,
        "citations": sum(len(check.get("citations") or ()) for _, check in checks),
        "invalid_citations": sum(check.get("invalid_citations") or 0 for _, check in checks),
        "by_domain": {domain: _counts([check for name, check in checks if name == domain]) for domain in DOMAINS},
        "by_collection": _sources(passages, "collection"),
        "by_language": _sources(passages, "language"),
        "by_document": dict(list(_sources(passages, "document").items())[:_DOCUMENTS_SHOWN]),
        "documents": len({passage.get("document") for passage in passages}),
    }


def _verifications(record: Record) -> Iterable[tuple[str, Record]]:
    return ((record.get("phases") or {}).get("verification") or {}).items()


def _counts(checks: Sequence[Record]) -> dict[str, Any]:
    searched = [check for check in checks if check.get("query") is not None or check.get("passages")]
    offered = [check for check in checks if check.get("passages")]
    citing = sum(bool(check.get("citations")) for check in offered)
    return {
        "verifications": len(checks),
        "searched": len(searched),
        "with_passages": len(offered),
        "empty": len(searched) - len(offered),
        "hit_rate": len(offered) / len(searched) if searched else None,
        "citation_rate": citing / len(offered) if offered else None,
    }


def _sources(passages: Sequence[Record], field: str) -> dict[str, dict[str, int]]:
    shown = Counter(str(passage.get(field) or "unknown") for passage in passages)
    cited = Counter(str(passage.get(field) or "unknown") for passage in passages if passage.get("cited"))
    return {name: {"passages": count, "cited": cited[name]} for name, count in shown.most_common()}


def evidence_effect(with_evidence: Sequence[Record], without: Sequence[Record]) -> dict[str, Any]:
    """Counts the verdicts that evidence changed: the counterfactual of the same pairs audited without it.

    The two runs should differ in evidence alone, such as `system=rag` with `ablation=full` and `ablation=ma_mpa`; a
    stochastic LM also changes verdicts by itself.

    Args:
        with_evidence: Records of the run with evidence.
        without: Records of the run without.

    Returns:
        Per phase that both runs have (`verification`, `final`) and domain: `n` compared, `changed`, `to_risky`,
        `to_safe`, `other` (from or to no label), `changed_share`; of the verdicts that have gold, `corrected`, `broken`
        and the p-value of McNemar's exact test.

    Raises:
        DeclarationError: The runs share no pair.
    """
    others = {(record["key"], record.get("repeat", 0)): record for record in without}
    pairs = [
        (record, others[key]) for record in with_evidence if (key := (record["key"], record.get("repeat", 0))) in others
    ]
    if not pairs:
        raise DeclarationError("the two runs share no pair: compare runs over the same data")
    effect: dict[str, Any] = {"pairs": len(pairs)}
    for phase in ("verification", "final"):
        kept = [(a, b) for a, b in pairs if _labels(a, phase) and _labels(b, phase)]
        if kept:
            effect[phase] = {domain: _change(kept, phase, domain) for domain in DOMAINS}
    return effect


def _labels(record: Record, phase: str) -> Mapping[str, Any]:
    name = record.get("final_phase") if phase == "final" else phase
    found: Mapping[str, Any] = (record.get("phases") or {}).get(name) or {}
    return found


def _change(pairs: Sequence[tuple[Record, Record]], phase: str, domain: str) -> dict[str, Any]:
    labels = [(_labels(a, phase)[domain].get("risk"), _labels(b, phase)[domain].get("risk")) for a, b in pairs]
    changed = [(after, before) for after, before in labels if after is not before]
    gold = [(a.get("gold") or {}).get(domain) for a, _ in pairs]
    judged = [(after == g, before == g) for (after, before), g in zip(labels, gold, strict=True) if g is not None]
    right = np.array(judged, dtype=bool).reshape(-1, 2)
    corrected, broken, p_value = mcnemar_exact(right[:, 0], right[:, 1])
    to_risky, to_safe = changed.count((True, False)), changed.count((False, True))
    return {
        "n": len(labels),
        "changed": len(changed),
        "changed_share": len(changed) / len(labels),
        "to_risky": to_risky,
        "to_safe": to_safe,
        "other": len(changed) - to_risky - to_safe,
        "with_gold": len(judged),
        "corrected": corrected if judged else None,
        "broken": broken if judged else None,
        "p_value": p_value if judged else None,
    }
