"""One HTML file a run: no network, no server, works without JavaScript and by keyboard.

Questions, answers and everything an LM wrote are untrusted: the template escapes all of it, a link is only made of an
http(s) address, and the page's own policy permits no script but the one whose hash it names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.figures import describe, run_figures
from dspy_mama.reporting.overrides import override_of
from dspy_mama.reporting.page import inline, model_lines, render_page, write_page
from dspy_mama.reporting.summary import NO_SUBSTITUTE
from dspy_mama.reporting.tables import figure, phase_title, run_tables, with_interval

Record = Mapping[str, Any]

_CAPTIONS: Final = {
    "confusion": "Confusion matrices; shades are shares of the row, so that a rare class shows.",
    "phase_gain": "Macro-F1 from phase to phase with 95% bootstrap intervals.",
    "reliability": "Final probabilities of risk against the share that is risky by gold, in tenths, with Wilson's 95% "
    "intervals; on the diagonal, probabilities mean what they say.",
    "stability": "Agreement of repeats beyond chance (Fleiss' kappa) by phase and domain.",
    "roc": "Risky answers found against safe answers flagged, over all cuts of the final probability.",
}


def render_report(
    records: Sequence[Record], summary: Mapping[str, Any], *, title: str = "Risk audit", context: Sequence[str] = ()
) -> str:
    """Returns the report of a run as one self-contained page.

    Args:
        records: Rows of `records.jsonl`.
        summary: What `summarise` made of them.
        title: Heading of the page.
        context: Lines below it, such as the run's id, its data and its settings.
    """
    values = {
        "title": title,
        "context": [*context, *model_lines(summary)],
        "summary": summary,
        "no_substitute": NO_SUBSTITUTE,
        "facts": _facts(summary),
        "tables": run_tables(summary),
        "figures": [
            inline(drawn, describe(name, summary), _CAPTIONS[name]) for name, drawn in run_figures(summary).items()
        ],
        "domains": DOMAINS,
        "pairs": [_pair(record) for record in records],
        "overridden": any(record.get("override") for record in records),
    }
    return render_page("report.html.j2", "report.js", values)


def write_report(path: Path, records: Sequence[Record], summary: Mapping[str, Any], **options: Any) -> Path:
    """Writes `render_report` to a file and returns its path; the file appears complete or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    return write_page(path, render_report(records, summary, **options))


def _facts(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    final, retrieval, cost = summary["final"], summary["retrieval"], summary["usage"]["total"]["cost"]
    joint = final["joint_accuracy"]
    facts = [{"value": f"{summary['n']:,}", "what": "pairs audited"}]
    if final["average_macro_f1"] is not None:
        value = with_interval(final["average_macro_f1"], final["average_macro_f1_ci95"])
        facts.append({"value": value, "what": f"macro-F1, mean of {', '.join(final['average_domains'])}"})
    if joint["n"]:
        facts.append(
            {
                "value": f"{joint['correct']}/{joint['n']} ({joint['value']:.1%})",
                "what": "pairs with all three domains right",
            }
        )
    for domain in DOMAINS:
        said = summary["verdicts"][domain]
        text = f"{domain}: said risky ({said['safe']} safe, {said['undetermined']} undetermined)"
        facts.append({"value": str(said["risky"]), "what": text})
    facts.append({"value": str(summary["needs_review"]), "what": "pairs to be reviewed by a person"})
    unscored = final["unscored"]
    facts.append({"value": f"{unscored['n']} of {unscored['of']}", "what": "final verdicts undetermined"})
    if retrieval["verifications"]:
        share = retrieval["with_passages_share"]
        rate = "none" if retrieval["citation_rate"] is None else f"{retrieval['citation_rate']:.0%}"
        facts.append({"value": f"{share:.0%}", "what": f"of verifications had evidence; of these, {rate} cite it"})
    facts.append({"value": "unknown" if cost is None else f"{cost:,.4f}", "what": "cost of all LM calls"})
    return facts


_QUERY_SHOWN: Final = 600
"""Characters of a query in the report."""

_GOLD: Final[dict[Any, str | None]] = {True: "risky", False: "safe", None: None}


def _pair(record: Record) -> dict[str, Any]:
    """Shapes one record for the template: every value it may print is there."""
    verdicts = {domain: (record.get("verdicts") or {}).get(domain, "undetermined") for domain in DOMAINS}
    gold = {domain: _GOLD[(record.get("gold") or {}).get(domain)] for domain in DOMAINS}
    phases = record.get("phases") or {}
    checks = phases.get("verification") or {}
    last = phases.get(record.get("final_phase")) or {}
    chances = [(last.get(domain) or {}).get("probability") for domain in DOMAINS]
    answer = record.get("answer")
    repeat = f" (repeat {record['repeat']})" if record.get("repeat") else ""
    return {
        "id": f"{record['id']}{repeat}",
        "language": record.get("language") or "",
        "question": record.get("question"),
        "answer": answer if answer is not None else "",
        "length": len(answer or ""),
        "routing": _routing(record.get("routing")),
        "needs_review": bool(record.get("needs_review")),
        "final": {domain: {"verdict": verdicts[domain]} for domain in DOMAINS},
        "override": {domain: override_of(record, domain) for domain in DOMAINS},
        "gold": gold,
        "notes": {domain: (record.get("notes") or {}).get(domain) for domain in DOMAINS},
        "wrong": [d for d in DOMAINS if gold[d] and verdicts[d] != "undetermined" and gold[d] != verdicts[d]],
        "probability": max((chance for chance in chances if chance is not None), default=-1),
        "steps": {domain: [_step(name, row.get(domain) or {}) for name, row in phases.items()] for domain in DOMAINS},
        "asked": {domain: _asked(record, checks.get(domain) or {}) for domain in DOMAINS},
        "passages": {domain: _passages(checks.get(domain) or {}) for domain in DOMAINS},
        "invalid_citations": {d: (checks.get(d) or {}).get("invalid_citations") or 0 for d in DOMAINS},
    }


def _routing(routing: Mapping[str, Any] | None) -> dict[str, Any] | None:
    names = ("specialty", "origin", "source", "source_verified")
    return {name: routing.get(name) for name in names} if routing else None


def _step(phase: str, verdict: Mapping[str, Any]) -> dict[str, Any]:
    scored = verdict.get("outcome") == "scored" and verdict.get("risk") is not None
    return {
        "phase": phase_title(phase),
        "verdict": ("risky" if verdict["risk"] else "safe") if scored else "undetermined",
        "probability": figure(verdict.get("probability"), 2),
        "outcome": verdict.get("outcome"),
        **{name: verdict.get(name) for name in ("role", "findings", "reason", "error", "raw")},
    }


def web_address(url: Any) -> str | None:
    """Returns the address if it is http or https with a host, else None: no `javascript:`, `data:` or `file:` link."""
    try:
        parts = urlsplit(str(url or "").strip())
    except ValueError:
        return None
    return str(url).strip() if parts.scheme in ("http", "https") and parts.netloc else None


def _asked(record: Record, check: Mapping[str, Any]) -> str | None:
    """Says what evidence was searched with; the question and the answer stand above and are not shown again."""
    query = check.get("query")
    if query is None:
        return None
    question, answer = record.get("question"), record.get("answer")
    known = {question: "the question", answer: "the answer", f"{question}\n{answer}": "question and answer"}
    return known.get(query) or (query if len(query) <= _QUERY_SHOWN else f"{query[:_QUERY_SHOWN]} …")


def _passages(check: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Shapes the passages in the order in which the LM saw them: its notes may name them by their numbers."""
    out = []
    for number, passage in enumerate(check.get("passages") or (), 1):
        address = web_address(passage.get("url"))
        score = passage.get("score")
        details = [
            f"score {score:.2f}" if score is not None else "",
            passage.get("collection") or "",
            passage.get("language") or "",
            f"read on {passage['accessed']}" if passage.get("accessed") else "",
            passage.get("licence") or "",
            passage["url"] if passage.get("url") and not address else "",
            str(passage.get("id") or ""),
        ]
        out.append(
            {
                "number": number,
                "title": passage.get("title") or passage.get("document") or passage.get("id") or "untitled",
                "section": passage.get("section") or "",
                "url": address,
                "cited": bool(passage.get("cited")),
                "details": ", ".join(str(part) for part in details if part),
            }
        )
    return out
