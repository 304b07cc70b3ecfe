"""A record of a diagnosis with its grades: what the grader and the matcher make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from dspy_mama.core.disease_knowledge import DIMENSIONS
from dspy_mama.core.record_texts import without_words
from dspy_mama.lm.usage import total
from dspy_mama.scoring.diagnosis import joined, units_of
from dspy_mama.scoring.disease_match import match_disease
from dspy_mama.scoring.standing import standing_of
from dspy_mama.systems.mac.grading import Grade, Grader, grade_record
from dspy_mama.systems.mac.knowledge_record import is_knowledge

GRADE_TEXTS: Final = ("reason",)


async def graded(record: Mapping[str, Any], grader: Grader | None, synonyms: Mapping[str, str]) -> dict[str, Any]:
    """Returns a record with `match`, its `standing` by the dictionary, and, where a grader is given, `grades`.

    A record without a known truth or without a diagnosis stays ungraded: there is nothing to grade.

    Args:
        record: A record of a diagnosis; grades that it has are replaced.
        grader: The grader, or None for the matcher of names alone.
        synonyms: What `synonym_table` made of a dictionary.
    """
    bare = ungraded(record)
    if is_knowledge(record):
        return bare if grader is None else await _known(bare, grader)
    if (standing := standing_of(bare, synonyms)) is not None:
        bare["standing"] = standing
    truth, final = record["gold"]["diagnosis"], record["final"]
    if not truth or final["outcome"] != "scored":
        return bare
    answers = {"most_likely": [final["most_likely"]], "possible": joined(record)}
    found = {unit: match_disease(truth, names, synonyms) for unit, names in answers.items()}
    bare["match"] = {unit: {"kind": m.kind, "likeness": round(m.likeness, 4)} for unit, m in found.items()}
    return bare if grader is None else await _with_grades(bare, grader)


def ungraded(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record as it was before any grading."""
    graded_too = units_of(record)  # a side of a disease is called diagnosis too
    units = {name: outcome for name, outcome in record["outcomes"].items() if name not in graded_too}
    kept = {name: value for name, value in record.items() if name not in ("grades", "match")}
    usage = {role: used for role, used in record["usage"].items() if role != "grader"}
    models = {role: model for role, model in record["models"].items() if role != "grader"}
    return {**kept, "outcomes": units, "usage": usage, "models": models}


async def _with_grades(record: dict[str, Any], grader: Grader) -> dict[str, Any]:
    return _graded_by(record, await _grades(record, grader))


async def _known(record: dict[str, Any], grader: Grader) -> dict[str, Any]:
    """Returns a record of the knowledge task with a grade per entry that could be read, and whose text is kept."""
    asked = {name: entry["text"] for name, entry in record["answers"].items() if entry["text"]}
    if not asked:
        return record
    headings = {name: f"{name}: {meaning}" for name, meaning in DIMENSIONS.items()}
    found = await asyncio.gather(
        *(grader.grade_knowledge(record["gold"]["diagnosis"], headings[name], text) for name, text in asked.items())
    )
    return _graded_by(record, dict(zip(asked, found, strict=True)))


def _graded_by(record: dict[str, Any], grades: Mapping[str, Grade]) -> dict[str, Any]:
    models = {reading.model for grade in grades.values() for reading in grade.readings if reading.model}
    asked = [grade.usage for grade in grades.values() if grade.by == "grader"]
    rows = {unit: grade_record(grade) for unit, grade in grades.items()}
    return {
        **record,
        "grades": rows,
        "outcomes": {**record["outcomes"], **{unit: row["outcome"] for unit, row in rows.items()}},
        "usage": {**record["usage"], "grader": total(asked).to_dict()},
        "models": {**record["models"], **({"grader": sorted(models)[0]} if models else {})},
    }


async def _grades(record: Mapping[str, Any], grader: Grader) -> dict[str, Grade]:
    truth, final = record["gold"]["diagnosis"], record["final"]
    names = joined(record)
    asked = [grader.grade_most_likely(truth, final["most_likely"])]
    if len(names) > 1:
        asked.append(grader.grade_possible(truth, names))
    units = ["most_likely", "possible"][: len(asked)]
    if record["stage"] == "primary":
        asked.append(grader.grade_tests(truth, final["tests"], record.get("case") or ""))
        units.append("tests")
    found = dict(zip(units, await asyncio.gather(*asked), strict=True))
    if "possible" not in found:  # nothing else was named: the list is the most likely diagnosis alone
        found["possible"] = replace(found["most_likely"], by="same")
    return {unit: found[unit] for unit in ("most_likely", "possible", "tests") if unit in found}


def grades_without_texts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record whose grades give no reasons: these may quote the case."""
    grades = record.get("grades") or {}
    rows = {
        unit: without_words(grade, GRADE_TEXTS)
        | {"readings": [without_words(reading, GRADE_TEXTS) for reading in grade["readings"]]}
        for unit, grade in grades.items()
    }
    return {**record, "grades": rows} if grades else dict(record)
