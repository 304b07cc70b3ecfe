"""Excel workbooks to grids, one per visible sheet that holds something."""

from __future__ import annotations

import io
from typing import Any, Final

from dspy_mama.core.errors import DataError, Fault
from dspy_mama.datasets.columnar import text_of
from dspy_mama.datasets.delimited import Grid

_NO_VALUE: Final = "a formula without a stored value; open and save the workbook in a spreadsheet, or paste values"


def read_workbook(data: bytes, name: str) -> dict[str, Grid]:
    """Returns the grids of a workbook (xlsx, xlsm) by sheet name; hidden and empty sheets are left out.

    Formulas count as the value stored with them.

    Args:
        data: The whole file.
        name: Name of the file, for messages.

    Raises:
        DataError: The file is no workbook that can be read.
    """
    values, formulas = _open(data, name, data_only=True), _open(data, name, data_only=False)
    try:
        grids = {}
        for sheet in values.worksheets:
            if sheet.sheet_state == "visible":
                grid = _read_sheet(sheet, formulas[sheet.title])
                if any(any(cells) for _, cells in grid.rows):
                    grids[sheet.title] = grid
        return grids
    finally:
        values.close()
        formulas.close()


def _open(data: bytes, name: str, data_only: bool) -> Any:
    from openpyxl import load_workbook

    try:
        return load_workbook(io.BytesIO(data), read_only=True, data_only=data_only)
    except Exception as error:  # noqa: BLE001 - a broken archive shows as any of a dozen errors
        reason = f"not a readable Excel workbook ({type(error).__name__}); save it again as .xlsx, without a password"
        raise DataError(name, [Fault(None, None, reason)]) from None


def _read_sheet(values: Any, formulas: Any) -> Grid:
    rows: list[tuple[int, list[str]]] = []
    marks: dict[tuple[int, int], str] = {}
    counted = 0
    for sheet in (values, formulas):
        # The stored dimension is wrong in files of some programs, and cells past it would be lost.
        sheet.reset_dimensions()
    pairs = zip(values.iter_rows(), formulas.iter_rows(), strict=False)
    for number, (shown, written) in enumerate(pairs, start=1):
        rows.append((number, [text_of(cell.value).replace("_x000D_", "\r") for cell in shown]))
        for column, cell in enumerate(written):
            if getattr(cell, "data_type", None) == "f":
                counted += 1
                if column >= len(shown) or shown[column].value is None:
                    marks[number, column] = _NO_VALUE
    return Grid(rows, marks, notices=[f"{counted} formula cell(s) read as their stored values"] if counted else [])
