"""The tables of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.tables import NONE, Table, bootstrap_note, figure, with_interval


def systems_table(comparison: Mapping[str, Any]) -> Table:
    """Returns the systems beside each other: macro-F1 and joint accuracy, and where each errs."""
    rows = []
    for name, score in comparison["systems"].items():
        joint = score["joint_accuracy"]
        share = f"{joint['correct']}/{joint['n']} = " if joint["n"] else ""
        rows.append(
            (
                name,
                with_interval(score["average_macro_f1"], score["average_macro_f1_ci95"]),
                share + with_interval(joint["value"], joint["ci95"]),
                *(_domain(score["domains"][domain]) for domain in DOMAINS),
                f"{score['unscored']['n']}/{score['unscored']['of']}",
            )
        )
    domains = tuple(f"{domain.capitalize()} F1 (FN, FP)" for domain in DOMAINS)
    header = ("System", "Average macro-F1", "Joint accuracy", *domains, "Unscored")
    left = [f"{count} of {name}" for name, count in comparison["left_out"].items() if count]
    notes = [
        f"{comparison['n']} shared pairs. {bootstrap_note(comparison)} FN: risky answers missed; FP: false alarms."
    ]
    notes += [f"Not judged by all, so left out: {', '.join(left)}."] if left else []
    notes += _disagreement(comparison)
    return Table("Systems on the same pairs", header, tuple(rows), tuple(notes))


def _domain(own: Mapping[str, Any]) -> str:
    return f"{figure(own['macro_f1'])} ({own['fn']}, {own['fp']})" if own["n"] else NONE


def _disagreement(comparison: Mapping[str, Any]) -> list[str]:
    """Says where the two headline measures name different winners."""
    scores = comparison["systems"]
    measures = {
        "average macro-F1": {name: score["average_macro_f1"] for name, score in scores.items()},
        "joint accuracy": {name: score["joint_accuracy"]["value"] for name, score in scores.items()},
    }
    best = {
        what: max((value, name) for name, value in values.items() if value is not None)
        for what, values in measures.items()
        if any(value is not None for value in values.values())
    }
    winners = {what: name for what, (_, name) in best.items()}
    if len(best) < 2 or len(set(winners.values())) < 2:
        return []
    macro, joint = winners["average macro-F1"], winners["joint accuracy"]
    if scores[macro]["joint_accuracy"]["value"] == best["joint accuracy"][0]:
        return []
    return [f"The measures disagree: {macro} leads in average macro-F1, {joint} in joint accuracy."]


def differences_table(comparison: Mapping[str, Any]) -> Table:
    """Returns every paired difference with its interval, and McNemar's test beside it."""
    rows: list[tuple[str, ...]] = []
    for name, delta in comparison["deltas"].items():
        first, _, second = name.partition("->")
        measures: dict[str, Any] = {"macro-F1, average": delta["average_macro_f1"]}
        measures |= {f"macro-F1, {domain}": delta["domains"][domain]["macro_f1"] for domain in DOMAINS}
        measures["joint accuracy"] = delta["joint_accuracy"]
        tests = {f"macro-F1, {domain}": delta["domains"][domain].get("mcnemar") for domain in DOMAINS}
        tests["joint accuracy"] = delta["joint_accuracy"].get("mcnemar")
        rows.extend(
            (
                f"{second} − {first}",
                what,
                with_interval(own["value"], own["ci95"], signed=True),
                own["finding"],
                *_mcnemar(tests.get(what)),
            )
            for what, own in measures.items()
        )
    header = ("Difference", "Measure", "Value (95% CI)", "Finding", "Right: only 1st / 2nd", "McNemar p", "p (Holm)")
    notes = (
        "Second minus first on the same resamples, on the pairs that both scored. Higher or lower only where the "
        "interval excludes 0.",
        "McNemar's exact test asks whether the two are right equally often (accuracy, not macro-F1); Holm's correction "
        "is over the pairs of systems compared on the same measure.",
    )
    return Table("Paired differences", header, tuple(rows), notes)


def _mcnemar(test: Mapping[str, Any] | None) -> tuple[str, str, str]:
    if test is None:
        return NONE, NONE, NONE
    return f"{test['only_first']} / {test['only_second']}", p_value(test["p"]), p_value(test["p_holm"])


def p_value(value: float) -> str:
    """Returns a p-value with three digits, or `< 0.001`."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def comparison_tables(comparison: Mapping[str, Any]) -> tuple[Table, ...]:
    """Returns the tables of a comparison."""
    return systems_table(comparison), differences_table(comparison)
