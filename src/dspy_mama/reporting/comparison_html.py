"""One HTML file a comparison: who is better by how much, and every pair on which the systems differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dspy_mama.core import DOMAINS, Domain
from dspy_mama.reporting.comparison import differing, share_rows
from dspy_mama.reporting.comparison_figures import cost_figure, cost_words, forest_figure, forest_words
from dspy_mama.reporting.comparison_tables import comparison_tables
from dspy_mama.reporting.page import inline, render_page
from dspy_mama.reporting.summary import NO_SUBSTITUTE
from dspy_mama.reporting.tables import figure as number
from dspy_mama.reporting.tables import with_interval
from dspy_mama.scoring import Labels

Record = Mapping[str, Any]
Texts = Mapping[tuple[str, int], Record]

MAX_PAIRS: Final = 2000
"""Pairs shown at most: more would make a page that no browser filters quickly."""

_NAMES: Final = {1: "risky", 0: "safe", -1: "undetermined"}


def render_comparison(
    comparison: Mapping[str, Any],
    systems: Mapping[str, Labels],
    records: Mapping[str, Texts],
    *,
    title: str = "Comparison of risk audits",
    context: Sequence[str] = (),
    costs: Mapping[str, float | None] | None = None,
    cost_unit: str = "",
    banner: str | None = None,
) -> str:
    """Returns a comparison as one self-contained page.

    Args:
        comparison: What `compare_systems` found.
        systems: The labels it was made from.
        records: By system, records by (id, repeat), where there are any: texts and reasons come from them.
        title: Heading of the page.
        context: Lines below it.
        costs: What a pair costs, by system; None = unknown.
        cost_unit: What is counted.
        banner: Warning about the labels, or None.
    """
    rows = share_rows(systems)
    differs = differing(rows)
    shown = np.flatnonzero(differs.any(axis=1))
    values = {
        "title": title,
        "context": list(context),
        "banner": banner,
        "no_substitute": NO_SUBSTITUTE,
        "facts": _facts(comparison, len(shown)),
        "tables": comparison_tables(comparison),
        "figures": _figures(comparison, costs or {}, cost_unit),
        "domains": DOMAINS,
        "names": list(systems),
        "differ": len(shown),
        "pairs": [_pair(row, rows, records, differs[row]) for row in shown[:MAX_PAIRS].tolist()],
    }
    return render_page("comparison.html.j2", "comparison.js", values)


def _facts(comparison: Mapping[str, Any], differ: int) -> list[dict[str, str]]:
    facts = [{"value": f"{comparison['n']:,}", "what": "pairs that every system judged"}]
    for name, score in comparison["systems"].items():
        if score["average_macro_f1"] is not None:
            value = with_interval(score["average_macro_f1"], score["average_macro_f1_ci95"])
            facts.append({"value": value, "what": f"average macro-F1 of {name}"})
    findings = [delta["average_macro_f1"]["finding"] for delta in comparison["deltas"].values()]
    sure = sum(finding in ("higher", "lower") for finding in findings)
    facts.append({"value": f"{sure} of {len(findings)}", "what": "differences in average macro-F1 exclude 0"})
    facts.append({"value": f"{differ:,}", "what": "pairs on which verdicts differ"})
    return facts


def _figures(comparison: Mapping[str, Any], costs: Mapping[str, float | None], unit: str) -> list[dict[str, str]]:
    systems = comparison["systems"]
    drawn = []
    if (forest := forest_figure(systems)) is not None:
        caption = "Each system's values with 95% bootstrap intervals; whether two differ is said by the paired table."
        drawn.append(inline(forest, forest_words(systems), caption))
    if (priced := cost_figure(systems, costs, unit)) is not None:
        drawn.append(inline(priced, cost_words(systems, costs, unit), f"Quality against {unit}."))
    return drawn


def _pair(row: int, rows: Mapping[str, Labels], records: Mapping[str, Texts], differs: Any) -> dict[str, Any]:
    first = next(iter(rows.values()))
    key = (first.ids[row], int(first.repeats[row]))
    known = [own for texts in records.values() if (own := texts.get(key)) is not None]
    text = next((own for own in known if own.get("question") is not None), known[0] if known else {})
    gold = {
        domain: _NAMES[int(code)] if code >= 0 else None for domain, code in zip(DOMAINS, first.gold[row], strict=True)
    }
    said = {
        name: {domain: _said(own, row, column, gold[domain]) for column, domain in enumerate(DOMAINS)}
        for name, own in rows.items()
    }
    for name, verdicts in said.items():
        record = records.get(name, {}).get(key) or {}
        final = (record.get("phases") or {}).get(record.get("final_phase")) or {}
        for domain, verdict in verdicts.items():
            verdict["reason"] = (final.get(domain) or {}).get("reason")
    return {
        "id": key[0] + (f" (repeat {key[1]})" if key[1] else ""),
        "language": text.get("language") or "",
        "question": text.get("question"),
        "answer": text.get("answer") or "",
        "gold": gold,
        "said": said,
        "differs": [domain for domain, differ in zip(DOMAINS, differs, strict=True) if differ],
        "wrong": _marks(said, "wrong"),
        "right": _marks(said, "right"),
    }


def _marks(said: Mapping[str, Mapping[Domain, Any]], mark: str) -> list[str]:
    """Returns `domain:position of the system` wherever a verdict has the mark."""
    return [
        f"{domain}:{position}"
        for position, verdicts in enumerate(said.values())
        for domain, verdict in verdicts.items()
        if verdict[mark]
    ]


def _said(own: Labels, row: int, column: int, gold: str | None) -> dict[str, Any]:
    verdict = _NAMES[int(own.predicted[row, column])]
    chance = float(own.probability[row, column])
    return {
        "verdict": verdict,
        "probability": number(None if np.isnan(chance) else chance, 2),
        "wrong": gold is not None and verdict != "undetermined" and verdict != gold,
        "right": gold is not None and verdict == gold,
    }
