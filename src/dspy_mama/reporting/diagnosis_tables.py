"""The tables of a diagnosis run, once as data, shown in the terminal, as Markdown or in HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dspy_mama.core.disease_knowledge import KNOWLEDGE
from dspy_mama.reporting import diagnosis_published as published
from dspy_mama.reporting.diagnosis_grader_tables import grader_table
from dspy_mama.reporting.diagnosis_paper import mean_of_sides, paper_table, sweeps_table
from dspy_mama.reporting.diagnosis_titles import title_of
from dspy_mama.reporting.tables import NONE, Table, amount, figure, with_interval
from dspy_mama.reporting.usage import per_case
from dspy_mama.scoring.diagnosis import UNITS

if TYPE_CHECKING:
    from rich.console import Console

Summary = Mapping[str, Any]


def diagnosis_tables(summary: Summary) -> list[Table]:
    """Returns every table that the run has figures for."""
    tables: list[Table | None] = [accuracy_table(summary)] if summary["cases"] else []
    if any(summary["leaks"].values()):
        tables.append(accuracy_table(summary, "without_leaks"))
    of_panel, between_models = differences_tables(summary)
    tables += [knowledge_table(summary), of_panel]
    tables += [usage_table(summary), groups_table(summary), agreement_table(summary), grader_table(summary)]
    tables.append(discussion_table(summary))
    if summary["cases"]:
        tables += [paper_table(summary), sweeps_table()]
    tables.append(between_models)
    return [table for table in tables if table is not None and table.rows]


def _cell(score: Mapping[str, Any] | None) -> str:
    if score is None:
        return NONE
    if not score["n"]:
        return "not judged"
    return f"{score['right']}/{score['n']} = {with_interval(score['value'], score['ci95'])}"


def accuracy_table(summary: Summary, part: str = "scores") -> Table:
    """Returns accuracy per stage and method: the comparison that a run is made for."""
    rows = []
    for stage in summary["stages"]:
        for method, units in summary[part].get(stage, {}).items():
            if stage != KNOWLEDGE:
                level = figure((units.get("most_likely") or {}).get("mean_level"), 2)
                cells = [_cell(units.get(unit)) for unit in UNITS]
                rows.append((title_of(stage), title_of(method), *cells, level, _missing(units)))
    header = ("Stage", "Method", "Most likely", "Possible", "Tests", "Mean level", "Unscored")
    title = "Accuracy by stage and method"
    if part == "without_leaks":
        leaks = ", ".join(f"{title_of(stage).lower()} {n}" for stage, n in summary["leaks"].items())
        title = f"Accuracy without cases whose text holds the diagnosis (cases left out: {leaks})"
    notes = (
        "Right = level 5 of a diagnosis on the Bond scale (5, 4, 3, 2, 0), level 4 or 5 of tests; possible = most "
        f"likely and other diagnoses together. {_intervals(summary)} Mean level: of the most likely diagnosis.",
    )
    return Table(title, header, tuple(rows), notes)


def _missing(units: Mapping[str, Any]) -> str:
    lost, of = (sum(score["unscored"][name] for score in units.values()) for name in ("n", "of"))
    return f"{lost}/{of}"


def knowledge_table(summary: Summary) -> Table:
    """Returns how well each method knows the diseases, side by side of a disease; without rows where nobody asked."""
    found = summary["scores"].get(KNOWLEDGE, {})
    rows = []
    for method, sides in found.items():
        for side, score in sides.items():
            levels = ", ".join(f"{level}: {count}" for level, count in score["levels"].items()) or NONE
            lost = _missing({side: score})
            level = figure(score["mean_level"], 2)
            rows.append((title_of(method), title_of(side), level, _cell(score), levels, lost))
        rows.append((title_of(method), "all of them", figure(mean_of_sides(sides), 2), NONE, NONE, _missing(sides)))
    header = ("Method", "Side of the disease", "Mean level", "Level 4 or 5", "Levels", "Unscored")
    notes = (
        "Likert scale of 5 to 1, graded without a reference text; the six sides are ours, for the paper prints none. "
        f"{_intervals(summary, 'diseases')}",
        "Self-consistency has no part in it: entries in prose have no majority.",
    )
    return Table(f"What is known of {summary['diseases']} diseases", header, tuple(rows), notes)


def _intervals(summary: Summary, over: str = "cases") -> str:
    kind = {"bca": "BCa"}.get(summary["method"], "percentile")
    how = f"{summary['resamples']} resamples, seed {summary['seed']}"
    return f"95% {kind} bootstrap over {over}, {how}; Wilson's where all or none are right."


def differences_tables(summary: Summary) -> tuple[Table, Table]:
    """Returns the paired differences of the panel to each single model, and those between single models.

    Without a panel all of them stand in the first table.
    """
    led = [row for row in summary["differences"] if "mac" in (row["first"], row["second"])]
    rest = [row for row in summary["differences"] if row not in led]
    if not led:
        led, rest = rest, led
    return _differences("Paired differences", led), _differences("Paired differences between single models", rest)


def _differences(title: str, found: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            title_of(row["stage"]), title_of(row["unit"]), f"{title_of(row['first'])} - {title_of(row['second'])}",
            str(row["n"]), with_interval(row["value"], row["ci95"], signed=True),
            f"{row['only_first']}:{row['only_second']}", figure(row["p"]), figure(row["p_holm"]),
        )
        for row in found if row["n"]
    )  # fmt: skip
    header = ("Stage", "Judged", "Methods", "n", "Difference (95% CI)", "Only first:second", "p", "p (Holm)")
    notes = ("p: McNemar's exact test, on the first repeat; Holm over all pairs of a stage.",)
    return Table(title, header, rows, notes)


def usage_table(summary: Summary) -> Table:
    """Returns calls, tokens and cost by stage, method and role."""
    rows = []
    for stage, methods in summary["usage"].items():
        for method, used in methods.items():
            if not used["n"]:
                continue
            rows += [
                (title_of(stage), title_of(method), role, *_spent(spent), _each(per_case(spent, used["n"])))
                for role, spent in used["roles"].items()
            ]
            each = _each(used["per_case"])
            rows.append((title_of(stage), title_of(method), "all but the grader", *_spent(used["method"]), each))
    header = ("Stage", "Method", "Role", "Calls", "Prompt tokens", "New tokens", "Cost (US$)", "Per case")
    notes = ("The speaker's row is what choosing the next speaker costs; tokens are what the server counted.",)
    return Table("Calls, tokens and cost", header, tuple(rows), notes)


def _each(used: Mapping[str, Any]) -> str:
    tokens = f"{_number(used['prompt_tokens'])} + {_number(used['completion_tokens'])} tokens"
    return f"{_number(used['calls'])} calls, {tokens}, {_cost(used['cost'])}"


def _spent(used: Mapping[str, Any]) -> tuple[str, str, str, str]:
    tokens = [amount(used, name) for name in ("calls", "prompt_tokens", "completion_tokens")]
    return (*tokens, amount(used, "cost", ",.4f"))  # type: ignore[return-value]


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.1f}"


def _cost(value: float | None) -> str:
    return "cost unknown" if value is None else f"US$ {value:,.4f}"


def groups_table(summary: Summary) -> Table:
    """Returns the paper's tests of groups."""
    names = {"anova": "ANOVA", "kruskal_wallis": "Kruskal-Wallis", "chi_square": "chi-square"}
    rows = []
    for stage, units in summary["groups"].items():
        for unit, found in units.items():
            for kind, what in (("levels", "levels"), ("proportions", "accuracy")):
                test = found[kind]
                if test["test"] == "none":
                    continue
                low = test["expected_minimum"] is not None and test["expected_minimum"] < 5
                doubt = f"smallest expected count {test['expected_minimum']:.1f}" if low else ""
                freedom = ", ".join(map(str, test["freedom"]))
                rows.append(
                    (title_of(stage), title_of(unit), what, names[test["test"]], f"{test['statistic']:.2f} ({freedom})",
                     figure(test["p"]), figure(test.get("p_holm")), doubt)
                )  # fmt: skip
    header = ("Stage", "Judged", "Of", "Test", "Statistic (df)", "p", "p (Holm)", "Note")
    notes = (
        "ANOVA where Shapiro-Wilk finds no method's levels non-normal, else Kruskal-Wallis. The tests take methods as "
        "independent groups, as the paper does; the paired differences above are sharper.",
    )
    return Table("Do the methods differ?", header, tuple(rows), notes)


def agreement_table(summary: Summary) -> Table | None:
    """Returns Fleiss' kappa over repeats; None for a single one."""
    if summary["agreement"] is None:
        return None
    rows = tuple(
        (
            title_of(stage), title_of(method), title_of(unit), str(found["levels"]["n"]),
            with_interval(found["levels"]["kappa"], found["levels"]["ci95"]), figure(found["levels"]["flip_rate"]),
            with_interval(found["right"]["kappa"], found["right"]["ci95"]),
        )
        for stage, methods in summary["agreement"].items()
        for method, units in methods.items()
        for unit, found in units.items()
    )  # fmt: skip
    header = ("Stage", "Method", "Judged", "Cases", "Kappa of levels", "Flip rate", "Kappa of right or wrong")
    title = f"Agreement of {summary['repeats']} repeats (Fleiss' kappa)"
    return Table(title, header, rows, (f"Paper: {published.KAPPA}",))


def discussion_table(summary: Summary) -> Table:
    """Returns how the panel's discussions went."""
    rows = []
    for stage, found in summary["discussion"].items():
        if found is None:
            continue
        ends = ", ".join(f"{why} {count}" for why, count in found["stopped"].items())
        speakers = ", ".join(f"{by} {count}" for by, count in found["speakers"].items())
        unreadable = f"{found['unreadable_turns']}/{found['all_turns']}"
        rows.append(
            (title_of(stage), str(found["n"]), f"{found['turns']:.1f}", f"{found['rounds']:.1f}", ends,
             str(found["refused_consensus"]), _contradicted(found), f"{found['outcome_unheld']}/{found['n']}",
             f"{found['diagnoses_named']:.1f}", unreadable, str(found["cut_prompts"]), speakers)
        )  # fmt: skip
    header = (
        "Stage", "Cases", "Turns", "Rounds", "Ended by", "Consensus refused", "Consensus contradicted",
        "Outcome nobody holds", "Diagnoses named", "Unreadable", "Cuts", "Speakers by",
    )  # fmt: skip
    notes = (
        "Consensus refused: the supervisor's flag came before every doctor was heard, or fewer than two could be read. "
        "Cuts: prompts that leave out earlier turns, or the end of the case.",
        "Consensus contradicted: declared while the doctors' latest diagnoses differ, or no doctor holds the one that "
        "was declared. Outcome nobody holds: so at any end. Both by the matcher of names: synonyms that no dictionary "
        "gives count as different.",
    )
    return Table("The panel's discussions", header, tuple(rows), notes)


def _contradicted(found: Mapping[str, Any]) -> str:
    """Returns how many of the consensuses the doctors' own diagnoses contradict."""
    agreed = found["stopped"].get("consensus", 0)
    return f"{found['contradicted_consensus']} of {agreed}" if agreed else NONE


def print_diagnoses(summary: Summary, console: Console) -> None:
    """Prints the tables of a run, the label banner first and the comparison of the methods last."""
    from rich.text import Text

    from dspy_mama.reporting.printing import show_tables

    if summary["label_banner"]:
        console.print(Text(summary["label_banner"], style="bold yellow"))
    first, *others = diagnosis_tables(summary)
    show_tables([*others, first], console)
