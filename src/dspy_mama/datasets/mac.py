"""The 302 rare-disease cases of the MAC framework, whose presentations are JSON inside a JSON string.

Source: github.com/geteff1/Multi-agent-conversation-for-disease-diagnosis, `dataset/rare_disease_302.json` (MIT
licence; the texts are restructured summaries of published case reports, which keep their own licences).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.core.patient_case import FURTHER_SECTION, PatientCase
from dspy_mama.datasets.encoding import decode
from dspy_mama.datasets.loading import given_path
from dspy_mama.settings import DataSettings

FILE: Final = "rare_disease_302.json"
_FIELDS: Final = ("Type", "Number", "Final Name", "Initial Presentation", "Follow-up Presentation")
_MASK: Final = "XXX"
_KARYOTYPE = re.compile(r"\d\d,\s*XXX")
"""69,XXX: in a text that holds it, XXX is no mask of a name."""

_GROUPS: Final = {"rheumatologicaxxxildhood": "rheumatologicalchildhood"}
"""Groups that upstream's masking has hit."""


def load_mac(settings: DataSettings) -> tuple[list[PatientCase], dict[str, Any]]:
    """Loads the cases of the MAC framework.

    Every text is read: what needed mending, what is empty and what is masked is said in the case's notices.

    Args:
        settings: `path` (the json file, or the folder that holds it), `encoding`.

    Returns:
        The cases in file order with ids `mac-0` to `mac-301`, and the facts of the file (name, sha256, rows).

    Raises:
        DeclarationError: Nothing is at the path, or a setting does not apply.
        DataError: The file is not of this form; every fault is named by the case's place in the file.
    """
    if settings.columns or settings.language != "en":
        raise DeclarationError("data=mac is English with fixed fields; leave out data.columns and data.language")
    path = _find(given_path(settings))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(str(path), [Fault(None, None, f"cannot be read ({error.strerror or error})")]) from None
    text, _ = decode(data, path.name, settings.encoding)
    rows = _rows(text, path.name)
    cases, faults = [], []
    for place, row in enumerate(rows):
        found = _faults(place, row)
        faults += found
        if not found and str(row.get("Selected", "Yes")).strip().casefold() != "no":
            cases.append(_case(row))
    numbers = Counter(case.id for case in cases)
    faults += [Fault(None, "Number", f"{name}: occurs {count} times") for name, count in numbers.items() if count > 1]
    if faults:
        raise DataError(path.name, faults)
    return cases, {"name": path.name, "sha256": hashlib.sha256(data).hexdigest(), "rows": len(rows)}


def _find(path: Path) -> Path:
    if path.is_file():
        return path
    for candidate in (path / FILE, path / "dataset" / FILE):
        if candidate.is_file():
            return candidate
    raise DeclarationError(f"data.path: there is no {FILE} in {str(path)!r}; give that file or its folder")


def _rows(text: str, name: str) -> list[Any]:
    try:
        whole = json.loads(text)
    except ValueError as error:
        raise DataError(name, [Fault(None, None, f"is no JSON ({error}); fetch the file again")]) from None
    rows = whole.get("Cases") if isinstance(whole, dict) else None
    if not isinstance(rows, list) or not rows:
        reason = 'holds no list "Cases"; for a csv or jsonl file of cases take data=table'
        raise DataError(name, [Fault(None, None, reason)])
    return rows


def _faults(place: int, row: Any) -> list[Fault]:
    if not isinstance(row, dict):
        return [Fault(place, None, "is no object (cases are counted from 0)")]
    missing = [Fault(place, name, "is missing (cases are counted from 0)") for name in _FIELDS if name not in row]
    blank = [
        Fault(place, name, "is empty")
        for name in ("Number", "Final Name", "Initial Presentation")
        if name in row and not str(row[name]).strip()
    ]
    return missing + blank


def _sections(text: Any) -> tuple[dict[str, str], str]:
    """Returns the sections of a presentation, and how it had to be read ("" = as it should)."""
    inner = text
    try:
        inner = json.loads(text)
    except (ValueError, TypeError):
        return {"": str(text).strip()}, "is plain text, not encoded JSON; shown whole"
    for candidate, strict, note in _attempts(str(inner)):
        try:
            found = json.loads(candidate, strict=strict)
        except ValueError:
            continue
        if isinstance(found, dict):
            return {str(key): _flat(value) for key, value in found.items()}, note
    return {"": str(inner).strip()}, "cannot be split into sections; shown whole"


def _attempts(inner: str) -> list[tuple[str, bool, str]]:
    cut = inner[inner.find("{") : inner.rfind("}") + 1]
    return [
        (inner, True, ""),
        (inner, False, "holds a control character, read as it is"),
        (cut, False, "has prose around its JSON, which was cut off"),
    ]


def _flat(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _case(row: dict[str, Any]) -> PatientCase:
    first, first_note = _sections(row["Initial Presentation"])
    later, later_note = _sections(row["Follow-up Presentation"])
    changed = [name for name, text in later.items() if name in first and first[name] != text]
    further = {name: text for name, text in later.items() if name not in first or name in changed}
    notices = [
        f"{what}: {note}"
        for what, note in (("Initial Presentation", first_note), ("Follow-up Presentation", later_note))
        if note
    ]
    notices += [f"{name} is empty" for name, text in {**first, **later}.items() if not text.strip()]
    notices += [f"the follow-up states {name} otherwise" for name in changed]
    if not further.get(FURTHER_SECTION, "").strip() and FURTHER_SECTION not in further:
        notices.append("the follow-up adds no further tests")
    if any(_MASK in text and not _KARYOTYPE.search(text) for text in {**first, **later}.values()):
        notices.append("words are masked with XXX")
    group = str(row["Type"]).strip().casefold()
    if group in _GROUPS:
        notices.append(f"group {row['Type']!r} read as {_GROUPS[group]!r}")
    reference = str(row.get("Case URL", "")).strip()
    return PatientCase(
        id=f"mac-{row['Number']}",
        sections=first,
        further=further,
        diagnosis=" ".join(str(row["Final Name"]).split()),
        group=_GROUPS.get(group, group),
        source="mac",
        notices=tuple(notices),
        extra={"reference": f"PMID {reference}" if reference.isdigit() else reference},
    )
