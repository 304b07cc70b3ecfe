"""What compiling changed, as tables: uncompiled against compiled, and the candidates between which was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.reporting.tables import Table, with_interval


def compilation_tables(document: Mapping[str, Any]) -> tuple[Table, ...]:
    """Returns the tables of a compile run.

    Args:
        document: What a compilation says of itself, as `summary.json` holds it under `compile`.
    """
    return _difference(document), _candidates(document)


def _difference(document: Mapping[str, Any]) -> Table:
    rows = []
    for split in ("test", "validation"):
        if (measured := document.get(split)) is None:
            continue
        before, after, gap = (measured[side] for side in ("before", "after", "difference"))
        rows.append(
            (
                split,
                str(before["n"]),
                with_interval(before["value"], before["ci95"]),
                with_interval(after["value"], after["ci95"]),
                with_interval(gap["value"], gap["ci95"], signed=True),
                gap["finding"],
            )
        )
    header = ("Split", "n", "Uncompiled (95% CI)", "Compiled (95% CI)", "Difference (95% CI)", "Finding")
    title = f"Compiled with {document['optimizer']} against uncompiled: {_words(document['target'])}"
    return Table(title, header, tuple(rows), tuple(_notes(document)))


def _notes(document: Mapping[str, Any]) -> list[str]:
    own = document["splits"]
    sizes = ", ".join(f"{own[name]} {name}" for name in ("train", "validation", "test") if own.get(name))
    folds = document.get("folds")
    notes = [f"{_upper(document['reason'])}. Validation: the best candidate; test: the program that is kept."]
    notes.append(
        f"Pairs: {sizes}. Chosen on validation, which flatters the chosen; the test pairs had no part in it."
        if not folds
        else f"Test: every pair once, in {len(folds)} nested folds, of a program that was compiled without it; "
        f"validation: of the program compiled on all pairs ({sizes})."
    )
    if document["test"] is None:
        notes.append("No test pair was looked at: the scores below are those of the validation pairs.")
    elif not document["kept"] and not folds:
        notes.append("Nothing was kept, so that on the test pairs both are the uncompiled program.")
    if document.get("test_looked_at_before"):
        notes.append(
            f"Other compilations looked at these test pairs {document['test_looked_at_before']} time(s) before: the "
            "best of several looks better than it is."
        )
    notes += [f"Mind that {doubt}." for doubt in document.get("doubts") or ()]
    if document["stopped"]:
        notes.append(f"The search was cut short: {document['stopped']}.")
    notes.append("Verdicts that are missing count as wrong. Paired bootstrap over questions.")
    return notes


def _candidates(document: Mapping[str, Any]) -> Table:
    chosen = document["chosen"]
    rows = tuple(
        (one["name"], str(one["n"]), with_interval(one["value"], one["ci95"]), "best" if one["name"] == chosen else "")
        for one in document["candidates"]
    )
    header = ("Candidate", "n", f"{_upper(_words(document['target']))} (95% CI)", "Chosen")
    return Table("Candidates on the validation pairs", header, rows)


def _words(target: str) -> str:
    return target.replace("_f1", " F1").replace("_", " ").replace("macro F1", "macro-F1")


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
