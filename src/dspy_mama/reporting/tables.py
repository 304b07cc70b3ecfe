"""The tables of a run, once as data, shown in the terminal or as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dspy_mama.core import DOMAINS

PHASE_TITLES: Final = {
    "initial": "MA1 initial",
    "verification": "MA2 verification",
    "consensus": "MA3 consensus",
    "final": "Final",
    "routing": "Routing",
    "total": "Total",
}
NONE: Final = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """A table as text.

    Attributes:
        title: What it shows.
        header: Column names.
        rows: Cells, as many as columns.
        notes: Lines below it.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def phase_title(name: str) -> str:
    """Returns a phase's name as the tables show it."""
    return PHASE_TITLES.get(name, name)


def delta_title(name: str) -> str:
    """Returns `first->second` as the tables show it."""
    return " → ".join(phase_title(part).split()[0] for part in name.split("->"))


def figure(value: float | None, digits: int = 3) -> str:
    """Returns a number with fixed digits, or a dash where it is undefined."""
    return NONE if value is None else f"{value:.{digits}f}"


def with_interval(value: float | None, interval: Sequence[float] | None, *, signed: bool = False) -> str:
    """Returns `0.800 (0.733 to 0.852)`."""
    if value is None:
        return NONE
    sign = "+" if signed else ""
    text = f"{value:{sign}.3f}"
    return text if interval is None else f"{text} ({interval[0]:{sign}.3f} to {interval[1]:{sign}.3f})"


def amount(usage: Mapping[str, Any], name: str, pattern: str = ",.0f") -> str:
    """Returns an amount; `unknown` where nobody knows it, `≥` before a sum that lacks some."""
    value = usage.get(name)
    if value is None:
        return "unknown"
    lower = "≥ " if (usage.get("unknown") or {}).get(name) else ""
    return f"{lower}{value:{pattern}}"


def bootstrap_note(summary: Mapping[str, Any]) -> str:
    """Returns one sentence on how the intervals were made."""
    kind = {"bca": "BCa"}.get(summary.get("method", "percentile"), "Percentile")
    over = "clusters (same question)" if summary.get("cluster_by_question") else "pairs"
    return f"{kind} bootstrap over {over}, {summary['resamples']} resamples, seed {summary['seed']}."


def _unscored(unscored: Mapping[str, Any]) -> str:
    kinds = ", ".join(f"{kind} {count}" for kind, count in unscored["by_kind"].items())
    return f"{unscored['n']}/{unscored['of']}" + (f" ({kinds})" if kinds else "")


def scores_table(summary: Mapping[str, Any], first: str = "Phase") -> Table:
    """Returns quality by phase (or by what `first` calls it) and domain; without any gold, verdicts are counted."""
    if summary["final"]["average_macro_f1"] is None and not any(
        score["average_domains"] for score in summary["phases"].values()
    ):
        return _verdicts_table(summary)
    rows = []
    for phase, score in summary["phases"].items():
        for domain in DOMAINS:
            own = score["domains"][domain]
            counts = [str(own[name]) if own["n"] else NONE for name in ("fn", "fp")]
            rows.append(
                (
                    phase_title(phase),
                    domain,
                    str(own["n"]),
                    with_interval(own["macro_f1"], own["ci95"]["macro_f1"]),
                    *(figure(own[name]) for name in ("accuracy", "precision", "recall", "auc")),
                    *counts,
                    _unscored(own["unscored"]),
                )
            )
    header = (first, "Domain", "n", "Macro-F1 (95% CI)", "Acc.", "Prec.", "Rec.", "AUC", "FN", "FP", "Unscored")
    notes = (
        f"{bootstrap_note(summary)} Macro-F1, precision and recall are means over risky and safe; unscored verdicts "
        "are left out of them.",
        *_warnings(summary),
    )
    return Table("Risk labels against gold", header, tuple(rows), notes)


def _warnings(summary: Mapping[str, Any]) -> list[str]:
    seen: dict[str, list[str]] = {}
    for phase, score in summary["phases"].items():
        for warning in score["warnings"]:
            seen.setdefault(warning, []).append(phase_title(phase).split()[0])
    phases = len(summary["phases"])
    return [w if len(where) == phases else f"{', '.join(where)}: {w}" for w, where in seen.items()]


def _verdicts_table(summary: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            phase_title(phase),
            domain,
            *(str(score["domains"][domain]["verdicts"][verdict]) for verdict in ("risky", "safe", "undetermined")),
            _unscored(score["domains"][domain]["unscored"]),
        )
        for phase, score in summary["phases"].items()
        for domain in DOMAINS
    )
    header = ("Phase", "Domain", "Risky", "Safe", "Undetermined", "Unscored")
    return Table("Verdicts (nothing to score: no verdict has a gold label)", header, rows)


def overall_table(summary: Mapping[str, Any], first: str = "Phase") -> Table:
    """Returns average macro-F1 and joint accuracy by phase (or by what `first` calls it)."""
    rows = []
    for phase, score in summary["phases"].items():
        joint = score["joint_accuracy"]
        share = f"{joint['correct']}/{joint['n']} = " if joint["n"] else ""
        worst = score["worst_case"]
        rows.append(
            (
                phase_title(phase),
                with_interval(score["average_macro_f1"], score["average_macro_f1_ci95"]),
                ", ".join(score["average_domains"]) or NONE,
                share + with_interval(joint["value"], joint["ci95"]),
                f"{score['unscored']['n']}/{score['unscored']['of']}",
                f"{figure(worst['average_macro_f1'])} / {figure(worst['joint_accuracy'])}",
            )
        )
    header = (first, "Average macro-F1", "over", "Joint accuracy", "Unscored", "If wrong")
    notes = ('With 95% intervals. "If wrong": both values, were every unscored verdict wrong.',)
    return Table("Over all domains", header, tuple(rows), notes)


def deltas_table(summary: Mapping[str, Any]) -> Table:
    """Returns what each phase gained over the one before, on the same resamples."""
    rows: list[tuple[str, ...]] = []
    for name, delta in summary["deltas"].items():
        values: dict[str, Any] = {f"macro-F1, {domain}": delta["domains"][domain]["macro_f1"] for domain in DOMAINS}
        values |= {"macro-F1, average": delta["average_macro_f1"], "joint accuracy": delta["joint_accuracy"]}
        rows.extend(
            (delta_title(name), what, with_interval(own["value"], own["ci95"], signed=True), own["finding"])
            for what, own in values.items()
        )
    header = ("Step", "Measure", "Difference (95% CI)", "Finding")
    notes = ("Higher or lower only where the interval excludes 0; on the pairs that both phases scored.",)
    return Table("Gain from phase to phase (paired)", header, tuple(rows), notes)


def usage_table(summary: Mapping[str, Any]) -> Table:
    """Returns calls, tokens, seconds and cost by phase."""
    rows = []
    for phase, used in summary["usage"].items():
        share = used["cached_share"]
        rows.append(
            (
                phase_title(phase),
                f"{used['calls']:,}",
                amount(used, "prompt_tokens"),
                "unknown" if share is None else f"{share:.0%}",
                amount(used, "completion_tokens"),
                amount(used, "seconds", ",.1f"),
                amount(used, "cost", ",.4f"),
                f"{used['reasks']} / {used['retries']}",
            )
        )
    header = ("Phase", "Calls", "Prompt tokens", "Cached", "New tokens", "LM seconds", "Cost", "Re-asked / retried")
    return Table("Usage", header, tuple(rows), ("LM seconds add up calls that ran side by side.",))


def run_tables(summary: Mapping[str, Any]) -> tuple[Table, ...]:
    """Returns the tables of a run, those without a row left out."""
    tables = [scores_table(summary)]
    if any(score["average_domains"] for score in summary["phases"].values()):
        tables += [overall_table(summary), deltas_table(summary)]
    if summary.get("compile"):
        from dspy_mama.reporting.compilation import compilation_tables

        tables = [*compilation_tables(summary["compile"]), *tables]
    if summary.get("stability"):
        from dspy_mama.reporting.stability_tables import stability_tables

        tables += stability_tables({"as given": summary["stability"]}, None)
    return tuple(table for table in [*tables, usage_table(summary)] if table.rows)
