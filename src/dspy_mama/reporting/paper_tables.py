"""Our numbers beside those that the paper prints; what was not run or is not printed says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dspy_mama.core import DOMAINS
from dspy_mama.reporting import published
from dspy_mama.reporting.published import PrintedDelta, PrintedScore
from dspy_mama.reporting.tables import NONE, Table, with_interval

NOT_RUN: Final = "not run"
NOT_PRINTED: Final = "not printed"

Summaries = Mapping[str, Mapping[str, Any]]


def _printed(value: float | None, ci: Sequence[float] | None = None, *, signed: bool = False) -> str:
    if value is None and ci is None:
        return NOT_PRINTED
    if value is None and ci is not None:
        sign = "+" if signed else ""
        return f"({ci[0]:{sign}.3f} to {ci[1]:{sign}.3f})"
    return with_interval(value, ci, signed=signed)


def _printed_joint(printed: PrintedScore) -> str:
    if printed.joint is None:
        return NOT_PRINTED
    return f"{printed.joint}/{published.N} = {_printed(printed.joint / published.N, printed.joint_ci)}"


def _printed_domain(printed: PrintedScore, domain: str) -> str:
    value, errors = printed.macro_f1.get(domain), printed.errors.get(domain)
    if value is None:
        return NOT_PRINTED
    return f"{value:.3f}" + (f"; FN {errors[0]}, FP {errors[1]}" if errors else "")


def _printed_rows(printed: PrintedScore) -> dict[str, str]:
    rows = {
        "average macro-F1": _printed(printed.average, printed.average_ci),
        "joint accuracy": _printed_joint(printed),
    }
    return rows | {f"{domain} macro-F1": _printed_domain(printed, domain) for domain in DOMAINS}


def _our_rows(score: Mapping[str, Any]) -> dict[str, str]:
    joint = score["joint_accuracy"]
    share = f"{joint['correct']}/{joint['n']} = {with_interval(joint['value'], joint['ci95'])}" if joint["n"] else NONE
    rows = {
        "average macro-F1": with_interval(score["average_macro_f1"], score["average_macro_f1_ci95"]),
        "joint accuracy": share,
    }
    for domain in DOMAINS:
        own = score["domains"][domain]
        value = with_interval(own["macro_f1"], own["ci95"]["macro_f1"])
        rows[f"{domain} macro-F1"] = f"{value}; FN {own['fn']}, FP {own['fp']}" if own["n"] else NONE
    return rows


def _rows(name: str, score: Mapping[str, Any] | None, printed: PrintedScore) -> Sequence[tuple[str, ...]]:
    """Returns a row a measure; of what was not run, only the measures that are printed, or one row that says so."""
    theirs = _printed_rows(printed)
    if score is not None:
        return [(name, what, ours, theirs[what]) for what, ours in _our_rows(score).items()]
    known = [(name, what, NOT_RUN, value) for what, value in theirs.items() if value != NOT_PRINTED]
    return known or [(name, "every measure", NOT_RUN, NOT_PRINTED)]


_HEADER: Final = ("Measure", "Ours (95% CI)", "Printed")


def systems_beside_paper(summaries: Summaries, notes: Sequence[str] = ()) -> Table:
    """Returns Table 3: every system of the paper, ours beside the printed.

    Args:
        summaries: Summary of a run with the full method, by system.
        notes: On what ours were made.
    """
    rows = [row for name, printed in published.SYSTEMS.items() for row in _rows(name, _final(summaries, name), printed)]
    rows += [row for name, printed in published.CLASSIFIERS.items() for row in _rows(name, None, printed)]
    return Table("Systems beside the paper's Table 3", ("System", *_HEADER), tuple(rows), tuple(notes))


def ablations_beside_paper(summaries: Summaries, notes: Sequence[str] = ()) -> Table:
    """Returns the ablation study: ours beside the printed, with the errors that explain it.

    Args:
        summaries: Summary of a run of the RAG system, by ablation.
        notes: On what ours were made.
    """
    rows = [
        row for name, printed in published.ABLATIONS.items() for row in _rows(name, _final(summaries, name), printed)
    ]
    return Table("Ablations of RAG beside the paper's", ("Ablation", *_HEADER), tuple(rows), tuple(notes))


def _final(summaries: Summaries, name: str) -> Mapping[str, Any] | None:
    summary = summaries.get(name)
    return None if summary is None else summary["final"]


def bootstrap_beside_paper(
    summaries: Summaries, comparison: Mapping[str, Any] | None, notes: Sequence[str] = ()
) -> Table:
    """Returns the paired differences: RAG minus the systems without it, and the gains from phase to phase.

    Args:
        summaries: Summary of a run with the full method, by system.
        comparison: What `compare_systems` found between them; None where fewer than two were run.
        notes: On what ours were made.
    """
    deltas = (comparison or {}).get("deltas", {})
    rows: list[tuple[str, ...]] = []
    for measure, key, printed in (
        ("macro-F1, average", "average_macro_f1", published.MACRO_F1_DELTAS),
        ("joint accuracy", "joint_accuracy", published.JOINT_DELTAS),
    ):
        for (first, second), own in printed.items():
            delta = deltas.get(f"{first}->{second}")
            rows.append((f"{second} − {first}", measure, *_ours(delta and delta[key]), *_theirs(own)))
    rows += [row for name in published.SECOND_GAIN for row in _gains(name, summaries.get(name) or {})]
    header = ("Difference", "Measure", "Ours (95% CI)", "Finding", "Printed", "Printed finding")
    return Table("Paired differences beside the paper's", header, tuple(rows), tuple(notes))


def _gains(name: str, summary: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Returns what each phase of one system gained."""
    low, high = published.FIRST_GAIN
    printed = {
        ("MA1 → MA2", "initial->verification"): f"{low:+.3f} to {high:+.3f} over all four",
        ("MA2 → MA3", "verification->consensus"): published.SECOND_GAIN[name],
    }
    rows: list[tuple[str, ...]] = []
    for (title, step), theirs in printed.items():
        delta = summary.get("deltas", {}).get(step)
        ours = _ours(delta and delta["average_macro_f1"])
        rows.append((f"{name}: {title}", "macro-F1, average", *ours, theirs, NONE))
    return rows


def _ours(own: Mapping[str, Any] | None) -> tuple[str, str]:
    if own is None:
        return NOT_RUN, NOT_RUN
    return with_interval(own["value"], own["ci95"], signed=True), own["finding"]


def _theirs(own: PrintedDelta) -> tuple[str, str]:
    finding = "higher" if own.ci[0] > 0 else "lower" if own.ci[1] < 0 else "not distinguishable"
    return _printed(own.value, own.ci, signed=True), finding
