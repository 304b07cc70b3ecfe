"""The tables of the retrieval benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dspy_mama.reporting.tables import NONE, Table, figure, with_interval

_MEASURES: Final = ("recall@1", "recall@4", "recall@10", "mrr", "ndcg@10")


def retrieval_tables(bench: Mapping[str, Any]) -> tuple[Table, ...]:
    """Returns recall@4 of every option by languages and by domain, and all measures of the chosen option.

    Args:
        bench: What `run_retrieval_bench` returns.
    """
    options, chosen = bench["options"], bench["default"]
    tables = [
        _recalls("Recall@4 by query language -> document language", options, "pairs", chosen),
        _recalls("Recall@4 by domain, all languages", options, "domains", chosen),
    ]
    if bench["formulations"]:
        tables.append(_recalls("Recall@4 by what the query is made of", bench["formulations"], "pairs", None))
    tables += [_whole(option) for option in options if option["name"] == chosen]
    return tuple(tables)


def _recalls(title: str, options: Sequence[Mapping[str, Any]], part: str, chosen: str | None) -> Table:
    names = list(options[0][part])
    header = ("Option", *(f"{name} (n={options[0][part][name]['n']})" for name in names), "ms")
    rows = []
    for option in options:
        cells = [option[part].get(name) for name in names]
        marked = f"{option['name']} *" if option["name"] == chosen else option["name"]
        shown = [NONE if cell is None else figure(cell["recall@4"]["value"]) for cell in cells]
        rows.append((marked, *shown, figure(option["milliseconds"], 2)))
    notes = ("* what the settings choose; ms: median of a search once its query is embedded",) if chosen else ()
    return Table(title, header, tuple(rows), notes)


def _whole(option: Mapping[str, Any]) -> Table:
    cells = [*option["pairs"].items(), *option["domains"].items()]
    rows = tuple(
        (name, str(cell["n"]), *(with_interval(cell[m]["value"], cell[m]["ci95"]) for m in _MEASURES))
        for name, cell in cells
    )
    return Table(f"{option['name']}: 95 % intervals by bootstrap over queries", ("Part", "n", *_MEASURES), rows)
