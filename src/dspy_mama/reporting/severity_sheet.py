"""The sheet on which clinicians rate how severe an audit's errors are, as csv or as an Excel workbook."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.core import DeclarationError
from dspy_mama.core.outcomes import Unscored
from dspy_mama.datasets.predictions import replace_file, safe_cell
from dspy_mama.reporting.errors import ErrorCase
from dspy_mama.systems.audit import SEVERITY_SCALE, SeverityOpinion

GIVEN: Final = (
    "item", "id", "language", "specialty", "domain", "error", "runs", "common", "question", "answer", "gold",
    "expert_note", "audit_label", "audit_reason",
)  # fmt: skip
"""Columns that are filled in already."""

ASKED: Final = ("severity", "explanation", "rater")
"""Columns for the clinician."""

SUGGESTED: Final = ("suggested_severity", "suggested_reason", "suggested_by")
"""Columns of the LM's suggestion, apart from the clinician's; left out where none was asked for."""

_EXCEL_CELL: Final = 32_767
_CUT: Final = " [... cut: longer than a cell]"
# What XML 1.0, and so a workbook, cannot hold.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_WIDTHS: Final = {"question": 50, "answer": 70, "explanation": 40, "expert_note": 30, "audit_reason": 40,
                  "suggested_reason": 40}  # fmt: skip


def sheet_rows(
    cases: Sequence[ErrorCase], opinions: Mapping[str, SeverityOpinion] | None = None
) -> list[dict[str, str]]:
    """Returns the sheet's rows as text, safe for spreadsheets.

    Args:
        cases: Errors to rate.
        opinions: An LM's opinion by item; None = no columns for suggestions.

    Raises:
        DeclarationError: A record holds no question or answer: nobody could rate it.
    """
    without = [str(case.record["id"]) for case in cases if not case.record.get("question")]
    if without:
        raise DeclarationError(
            f"{len(without)} record(s) hold no question and answer (first: {without[0]!r}): nobody could rate them; "
            "run with tracking.store_text=true"
        )
    return [_row(case, opinions) for case in cases]


def _row(case: ErrorCase, opinions: Mapping[str, SeverityOpinion] | None) -> dict[str, str]:
    record, risky = case.record, case.kind == "false_positive"
    verdict = record["phases"][record["final_phase"]][case.domain]
    row: dict[str, Any] = {
        "item": case.item,
        "id": record["id"],
        "language": record.get("language"),
        "specialty": (record.get("routing") or {}).get("specialty"),
        "domain": case.domain,
        "error": case.kind.replace("_", " "),
        "runs": ", ".join(case.runs),
        "common": case.common,
        "question": record["question"],
        "answer": record.get("answer"),
        "gold": "safe" if risky else "risky",
        "expert_note": (record.get("notes") or {}).get(case.domain),
        "audit_label": "risky" if risky else "safe",
        "audit_reason": verdict.get("reason"),
        **dict.fromkeys(ASKED, ""),
    }
    if opinions is not None:
        row |= _suggestion(opinions.get(case.item))
    return {name: safe_cell(value) for name, value in row.items()}


def _suggestion(opinion: SeverityOpinion | None) -> dict[str, Any]:
    if opinion is None:
        return dict.fromkeys(SUGGESTED, "")
    if isinstance(opinion.outcome, Unscored):
        why = f"no suggestion ({opinion.outcome.kind}): {opinion.outcome.reason}"
        return dict(zip(SUGGESTED, ("", why, opinion.model), strict=True))
    return dict(zip(SUGGESTED, (opinion.outcome.value, opinion.reason, opinion.model), strict=True))


def check_target(path: str | Path) -> Path:
    """Returns the path of a sheet that may be written there.

    Raises:
        DeclarationError: The ending is neither .csv nor .xlsx, or the file exists: it may hold ratings.
    """
    target = Path(path).expanduser()
    if target.suffix.lower() not in _MAKERS:
        raise DeclarationError(f"{target}: a sheet for ratings is a .csv or .xlsx file")
    if target.exists():
        raise DeclarationError(f"{target} exists already and may hold ratings; name another file")
    return target


def write_sheet(
    cases: Sequence[ErrorCase], path: str | Path, opinions: Mapping[str, SeverityOpinion] | None = None
) -> Path:
    """Writes the sheet; the file appears complete or not at all.

    Args:
        cases: Errors to rate.
        path: Target; `.csv` (UTF-8 with a byte order mark, which Excel needs) or `.xlsx` (with the scale on a second
            sheet and a list of levels to choose from). Missing folders are made; a file with ratings is not replaced.
        opinions: An LM's opinion by item, or None.

    Raises:
        DeclarationError: The ending is another, the file exists or cannot be written, or a record holds no texts.
    """
    target = check_target(path)
    columns = (*GIVEN, *ASKED, *(SUGGESTED if opinions is not None else ()))
    data = _MAKERS[target.suffix.lower()](columns, sheet_rows(cases, opinions))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, data)
    except OSError as error:
        raise DeclarationError(f"{target}: cannot be written ({error.strerror or error})") from None
    return target


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, columns)
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode("utf-8-sig", "replace")


def _fit(text: str) -> str:
    clean = _CONTROLS.sub("\ufffd", text)
    return clean if len(clean) <= _EXCEL_CELL else clean[: _EXCEL_CELL - len(_CUT)] + _CUT


def _xlsx(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.styles import Alignment, Font, PatternFill
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    book = Workbook()
    sheet = book.active
    sheet.title = "errors"
    sheet.append(list(columns))
    for row in rows:
        sheet.append([_fit(row[name]) or None for name in columns])
    to_fill = PatternFill("solid", fgColor="FFF2CC")
    for place, name in enumerate(columns, start=1):
        letter = get_column_letter(place)
        sheet.column_dimensions[letter].width = _WIDTHS.get(name, 14)
        for cell in sheet[letter]:
            cell.alignment = Alignment(wrap_text=True, vertical="top")
            if cell.value is not None:
                cell.data_type = "s"  # text, also where it looks like a number
            if name in ASKED:
                cell.fill = to_fill
        sheet[f"{letter}1"].font = Font(bold=True)
    levels = DataValidation(
        type="list", formula1='"' + ",".join(map(str, SEVERITY_SCALE)) + '"', allow_blank=True,
        showErrorMessage=True, error="1 to 5; the scale is on the second sheet",
    )  # fmt: skip
    sheet.add_data_validation(levels)
    letter = get_column_letter(columns.index("severity") + 1)
    levels.add(f"{letter}2:{letter}{len(rows) + 1}")
    sheet.freeze_panes = "C2"
    _scale_sheet(book.create_sheet("scale"))
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _scale_sheet(sheet: Any) -> None:
    sheet.append(["level", "name", "meaning"])
    for level, (name, meaning) in SEVERITY_SCALE.items():
        sheet.append([level, name, meaning])
    sheet.append([])
    sheet.append([None, None, "Rate the consequence if the audit's label were followed, not how likely it is."])
    sheet.append([None, None, "Give every rating a reason under explanation, and your name or number under rater."])
    sheet.column_dimensions["C"].width = 110


_MAKERS: Final = {".csv": _csv, ".xlsx": _xlsx}
