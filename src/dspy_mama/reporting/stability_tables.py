"""The tables of a stability study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dspy_mama.core import DOMAINS
from dspy_mama.reporting.tables import NONE, Table, figure, phase_title, with_interval

SHOWN_FLIPS: Final = 20
"""Flipping items in the table; the JSON has them all."""

_MARKS: Final = {"risky": "R", "safe": "s", None: "?"}


def stability_tables(settings: Mapping[str, Mapping[str, Any]], between: Mapping[str, Any] | None) -> tuple[Table, ...]:
    """Returns the tables of a study.

    Args:
        settings: What `summarise_stability` says, by the setting's name.
        between: What `compare_settings` says, or None.
    """
    tables = [_agreement(settings)]
    if between:
        tables.append(_between(between))
    tables += [_spread(settings), _flips(settings)]
    return tuple(table for table in tables if table.rows)


def _row(own: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(own["n"]),
        f"{own['flipped']}/{own['n']}",
        with_interval(own["flip_rate"], own["flip_rate_ci95"]),
        with_interval(own["fleiss_kappa"], own["fleiss_kappa_ci95"]),
        str(own["missing"]),
    )


_MEASURES: Final = ("n", "Flipped", "Flip rate (95% CI)", "Fleiss' kappa (95% CI)", "Unscored")


def _agreement(settings: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = tuple(
        (name, phase_title(phase), domain, *_row(domains[domain]))
        for name, own in settings.items()
        for phase, domains in own["phases"].items()
        for domain in DOMAINS
    )
    repeats = {str(own["repeats"]) for own in settings.values()}
    first = next(iter(settings.values()))
    notes = [
        f"{', '.join(sorted(repeats))} repeats. Flip rate: the estimated chance that two runs disagree on a pair. "
        "Kappa rests on pairs scored in every repeat; a dash where only one label was ever given. "
        f"Intervals: bootstrap over pairs, {first['resamples']} resamples, seed {first['seed']}."
    ]
    replayed = {name: own["cache_hits"] for name, own in settings.items() if own["cache_hits"]}
    notes += [
        f"{name}: {hits} replies came from the cache of an earlier study with the same settings: no new samples"
        for name, hits in replayed.items()
    ]
    return Table("Stability of labels over repeats", ("Setting", "Phase", "Domain", *_MEASURES), rows, tuple(notes))


def _between(between: Mapping[str, Any]) -> Table:
    rows = tuple((domain, *_row(between["domains"][domain])) for domain in DOMAINS)
    notes = ("Each setting's majority label of the final verdicts; a tie counts as unscored.",)
    return Table(f"Agreement between {len(between['settings'])} settings", ("Domain", *_MEASURES), rows, notes)


def _spread(settings: Mapping[str, Mapping[str, Any]]) -> Table:
    names = [f"final/{domain}/macro_f1" for domain in DOMAINS] + ["final/average_macro_f1", "final/joint_accuracy"]
    rows = tuple(
        (
            name,
            metric.removeprefix("final/"),
            str(spread["n"]),
            *(figure(spread[p]) for p in ("mean", "sd", "min", "max")),
        )
        for name, own in settings.items()
        for metric in names
        if (spread := own["metrics"].get(metric)) and spread["n"]
    )
    header = ("Setting", "Metric", "Repeats", "Mean", "SD", "Min", "Max")
    return Table("Spread of the final metrics over repeats", header, rows)


def _flips(settings: Mapping[str, Mapping[str, Any]]) -> Table:
    flips: list[tuple[str, Mapping[str, Any]]] = [
        (name, flip) for name, own in settings.items() for flip in own["flips"] if flip["phase"] == "final"
    ]
    rows = tuple(
        (name, flip["id"], flip["domain"], _labels(flip["labels"]), figure(flip["flip_rate"], 2))
        for name, flip in flips[:SHOWN_FLIPS]
    )
    more = len(flips) - len(rows)
    notes = ("R risky, s safe, ? unscored.", *([f"{more} more are in the JSON."] if more > 0 else []))
    return Table("Pairs whose final label flips", ("Setting", "Pair", "Domain", "Labels", "Flip rate"), rows, notes)


def _labels(labels: Sequence[str | None]) -> str:
    return " ".join(_MARKS[label] for label in labels) or NONE
