"""One HTML file a diagnosis run: who said what, how diagnoses moved, what was open, and how it was graded.

Cases and everything an LM wrote are untrusted: the template escapes all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dspy_mama.core.disease_knowledge import KNOWLEDGE
from dspy_mama.core.disease_names import normalise_disease
from dspy_mama.reporting.diagnosis import NO_SUBSTITUTE
from dspy_mama.reporting.diagnosis_tables import diagnosis_tables
from dspy_mama.reporting.diagnosis_titles import title_of
from dspy_mama.reporting.page import model_lines, render_page, write_page
from dspy_mama.reporting.tables import with_interval
from dspy_mama.scoring.diagnosis import Record, Unit, is_right, joined, score_of, self_graded, units_of
from dspy_mama.scoring.standing import kept_standing

Row = dict[str, Any]


def render_diagnosis_report(
    records: Sequence[Record], summary: Mapping[str, Any], *, title: str = "Diagnoses", context: Sequence[str] = ()
) -> str:
    """Returns the report of a diagnosis run as one self-contained page.

    Args:
        records: Rows of `records.jsonl`.
        summary: What `summarise_diagnoses` made of them.
        title: Heading of the page.
        context: Lines below it, such as the run's id, its data and its settings.
    """
    values = {
        "title": title,
        "context": [*context, *model_lines(summary)],
        "summary": summary,
        "no_substitute": NO_SUBSTITUTE,
        "facts": _facts(summary),
        "tables": diagnosis_tables(summary),
        "methods": [(name, title_of(name)) for name in summary["methods"]],
        "stages": [(name, title_of(name)) for name in summary["stages"]],
        "cases": [_case(record) for record in records],
    }
    return render_page("diagnosis.html.j2", "diagnosis.js", values)


def write_diagnosis_report(path: Path, records: Sequence[Record], summary: Mapping[str, Any], **options: Any) -> Path:
    """Writes `render_diagnosis_report` to a file and returns its path; it appears complete or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    return write_page(path, render_diagnosis_report(records, summary, **options))


def _facts(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    facts = [{"value": str(summary["cases"]), "what": "cases"}] if summary["cases"] else []
    facts += [{"value": str(summary["diseases"]), "what": "diseases asked about"}] if summary["diseases"] else []
    facts += [
        {"value": str(summary["n"]), "what": "records"},
        {"value": str(len(summary["methods"])), "what": "methods compared"},
    ]
    for stage in summary["stages"]:
        score = summary["scores"].get(stage, {}).get("mac", {}).get("most_likely")
        if score and score["n"]:
            value = with_interval(score["value"], score["ci95"])
            facts.append(
                {"value": value, "what": f"{title_of(stage).lower()}: the panel's most likely diagnosis right"}
            )
    discussions = [found for found in summary["discussion"].values() if found]
    if discussions:
        agreed, n = (sum(f["stopped"].get("consensus", 0) for f in discussions), sum(f["n"] for f in discussions))
        facts.append({"value": f"{agreed} of {n}", "what": "discussions ended in consensus"})
        if agreed:
            doubted = sum(f["contradicted_consensus"] for f in discussions)
            what = "consensuses that the doctors' latest diagnoses contradict"
            facts.append({"value": f"{doubted} of {agreed}", "what": what})
    rate = summary["unscored_rate"]
    facts.append({"value": "none" if rate is None else f"{rate:.1%}", "what": "outcomes unscored"})
    return facts


def _case(record: Record) -> Row:
    """Shapes one record for the template: every value that it may print is there."""
    rights = {unit: is_right(record, unit) for unit in units_of(record)}
    return _shared(record, rights) | (_sides(record) if record["stage"] == KNOWLEDGE else _diagnosis(record, rights))


def _shared(record: Record, rights: Mapping[Unit, bool | None]) -> Row:
    repeat = int(record.get("repeat") or 0)
    return {
        "id": record["case_id"] + (f" (repeat {repeat})" if repeat else ""),
        "stage": record["stage"],
        "method": record["method"],
        "stage_title": title_of(record["stage"]),
        "method_title": title_of(record["method"]),
        "case": record.get("case"),
        "truth": record["gold"].get("diagnosis"),
        "group": record["gold"].get("group"),
        "leak": bool(record.get("leak")),
        "notices": [*(record.get("notices") or ()), *(record.get("notes") or ())],
        "grades": [_grade(record, unit, rights[unit]) for unit in rights if (record.get("grades") or {}).get(unit)],
        "self_graded": self_graded(record),
        "match": {},
        "standing": None,
        "sides": None,
        "right": None,
    }


def _sides(record: Record) -> Row:
    """Returns what a method says of a disease: its entries with the drafts behind them."""
    sides = [
        {
            "title": title_of(name),
            "level": ((record.get("grades") or {}).get(name) or {}).get("score"),
            **{key: entry.get(key) for key in ("outcome", "text", "error", "raw", "by", "disagreement")},
            "drafts": [dict(draft) for draft in entry.get("drafts") or ()],
        }
        for name, entry in record["answers"].items()
    ]
    levels = [level for unit in units_of(record) if (level := score_of(record, unit)) is not None]
    return {"sides": sides, "mean": sum(levels) / len(levels) if levels else None, "told": len(levels)}


def _diagnosis(record: Record, rights: Mapping[Unit, bool | None]) -> Row:
    final = record["final"]
    return {
        "final": {name: final.get(name) for name in ("outcome", "error", "raw", "most_likely", "by", "argument")},
        "possible": joined(record),
        "tests": final.get("tests") or [],
        "right": rights.get("most_likely"),
        "stopped": _ending(record),
        "standing": kept_standing(record),
        "specialties": _specialties(record.get("specialties")),
        "turns": _turns(record),
        "moves": _moves(record),
        "attempts": [dict(attempt) for attempt in record.get("attempts") or ()],
        "match": {unit: found["kind"] for unit, found in (record.get("match") or {}).items()},
        "cuts": record.get("cuts") or [],
    }


def _ending(record: Record) -> str | None:
    said = {
        "consensus": f"consensus in round {record.get('consensus_round')}",
        "rounds": f"no consensus after {record.get('rounds')} rounds",
        "unreadable": "ended: a whole pass of doctors could not be read",
    }
    return said.get(str(record.get("stopped")))


def _specialties(found: Mapping[str, Any] | None) -> Row | None:
    if not found:
        return None
    dropped = [f"{entry['name']} ({entry['why']})" for entry in found.get("dropped") or ()]
    return {"chosen": found.get("chosen") or [], "dropped": dropped, "filled": found.get("filled") or []}


_TURN = (
    "turn", "round", "speaker", "role", "specialty", "outcome", "error", "raw", "argument", "disagreement",
    "most_likely", "differentials", "tests", "agrees", "consensus", "accepted", "next_speaker",
)  # fmt: skip


def _turns(record: Record) -> list[Row]:
    out = []
    held: dict[str, str] = {}
    for turn in record.get("turns") or ():
        row: Row = {name: turn.get(name) for name in _TURN}
        name = normalise_disease(turn.get("most_likely") or "")
        before = held.get(turn["speaker"])
        row["changed"] = bool(name and before is not None and before != name)
        if name:
            held[turn["speaker"]] = name
        selection = turn.get("selection") or {}
        row["floor"] = {
            "order": "", "supervisor": "called by the supervisor", "speaker": "chosen by the LM that leads",
            "fallback": f"next in order; {selection.get('asked') or 'nobody'} was asked for",
        }.get(str(selection.get("by")), "")  # fmt: skip
        out.append(row)
    return out


def _moves(record: Record) -> Row:
    """Returns who held which diagnosis from turn to turn: one row a speaker, one column a turn."""
    turns = record.get("turns") or ()
    speakers = list(dict.fromkeys(turn["speaker"] for turn in turns))
    names: dict[str, int] = {}
    for turn in turns:
        if turn.get("most_likely"):
            names.setdefault(normalise_disease(turn["most_likely"]) or turn["most_likely"], len(names) % 8)
    rows = []
    for speaker in speakers:
        cells = []
        for turn in turns:
            said = turn.get("most_likely") if turn["speaker"] == speaker else None
            unread = turn["speaker"] == speaker and not said
            key = names.get(normalise_disease(said) or said) if said else None
            cells.append({"text": said or ("not readable" if unread else ""), "colour": key})
        rows.append({"speaker": speaker, "cells": cells})
    return {"turns": [turn["turn"] for turn in turns], "rows": rows, "distinct": len(names)}


def _grade(record: Record, unit: Unit, right: bool | None) -> Row:
    grade = record["grades"][unit]
    return {
        "unit": title_of(unit),
        "right": right,
        **{name: grade.get(name) for name in ("outcome", "score", "error", "by", "reason", "agreement")},
        "readings": [
            {
                "order": _order(record, reading),
                **{name: reading.get(name) for name in ("outcome", "score", "reason", "error")},
            }
            for reading in grade.get("readings") or ()
        ],
    }


def _order(record: Record, reading: Mapping[str, Any]) -> str:
    if record["stage"] == KNOWLEDGE:
        return f"reading {int(reading.get('repeat') or 0) + 1}"
    return "truth read first" if reading["order"] == "truth_first" else "answer read first"
