"""The tables of the retrieval benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dspy_mama.reporting.tables import NONE, Table, figure, with_interval

_COMPARED: Final = ("recall@4", "ndcg@10")
_MEASURES: Final = ("recall@1", "recall@4", "recall@10", "mrr", "ndcg@10")


def retrieval_tables(bench: Mapping[str, Any]) -> tuple[Table, ...]:
    """Returns recall@4 of every option by languages, set of queries and domain, and all measures of the chosen one.

    Args:
        bench: What `run_retrieval_bench` returns.
    """
    options, chosen = bench["options"], bench["default"]
    by_languages = "Recall@4 by query language -> document language"
    tables = [_recalls(by_languages, options, [option["pairs"] for option in options], chosen)]
    for name in options[0]["sets"]:
        parts = [option["sets"][name] for option in options]
        tables.append(_recalls(f"{by_languages}, {name} set of queries", options, parts, chosen))
    domains = [option["domains"] for option in options]
    tables.append(_recalls("Recall@4 by domain, all languages", options, domains, chosen))
    if bench["formulations"]:
        parts = [option["pairs"] for option in bench["formulations"]]
        tables.append(_recalls("Recall@4 by what the query is made of", bench["formulations"], parts, None))
    others = [option for option in options if option["name"] != chosen and option["behind"]]
    tables += [_behind(others, chosen)] if others else []
    tables += [_whole(option) for option in options if option["name"] == chosen]
    return tuple(tables)


def _recalls(
    title: str,
    options: Sequence[Mapping[str, Any]],
    parts: Sequence[Mapping[str, Any]],
    chosen: str | None,
) -> Table:
    names = list(parts[0])
    header = ("Option", *(f"{name} (n={parts[0][name]['n']})" for name in names), "ms")
    rows = []
    for option, part in zip(options, parts, strict=True):
        cells = [part.get(name) for name in names]
        marked = f"{option['name']} *" if option["name"] == chosen else option["name"]
        shown = [NONE if cell is None else figure(cell["recall@4"]["value"]) for cell in cells]
        rows.append((marked, *shown, figure(option["milliseconds"], 2)))
    notes = ("* what the settings choose; ms: median of a search once its query is embedded",) if chosen else ()
    return Table(title, header, tuple(rows), notes)


def _behind(others: Sequence[Mapping[str, Any]], chosen: str) -> Table:
    names = [name for name in others[0]["behind"] if name.endswith("all") or name == "cross-lingual"]
    header = ("Option", *(f"{name}, {measure}" for name in names for measure in _COMPARED))
    rows = []
    for option in others:
        cells = [option["behind"][name][measure] for name in names for measure in _COMPARED]
        rows.append((option["name"], *(with_interval(cell["value"], cell["ci95"]) for cell in cells)))
    notes = ("95 % intervals by bootstrap over paired differences, query by query",)
    return Table(f"What {chosen} has more than", header, tuple(rows), notes)


def _whole(option: Mapping[str, Any]) -> Table:
    cells = [*option["pairs"].items(), *option["domains"].items()]
    rows = tuple(
        (name, str(cell["n"]), *(with_interval(cell[m]["value"], cell[m]["ci95"]) for m in _MEASURES))
        for name, cell in cells
    )
    return Table(f"{option['name']}: 95 % intervals by bootstrap over queries", ("Part", "n", *_MEASURES), rows)
