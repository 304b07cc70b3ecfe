"""Small files in the real layouts, written by the tests themselves; reached through the `make` fixture."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

Q_JA, A_JA = "頭が痛いです。どうすればよいですか。", "痛み止めを飲んで、ゆっくり休んでください。"
Q_EN, A_EN = "My head hurts. What should I do?", "Take a painkiller and rest."
Q_FR, A_FR = "J'ai très mal à la tête, que faire ?", "Reposez-vous et buvez de l'eau : ce n'est pas très grave."
Q_DE, A_DE = "Mein Kopf tut weh. Was soll ich tun?", "Ruhen Sie sich aus und trinken Sie genügend Wasser."

RISKS = ["medicalRisk", "ethicalRisk", "legalRisk"]
NOTES = [f"{risk}Note_{code}" for risk in RISKS for code in ("ja", "en")]
JA_HEADER = ["id", *(f"{text}_{code}" for text in ("question", "answer") for code in ("ja", "en", "fr"))]
JA_HEADER += [*RISKS, *NOTES, "fluency", "helpfulness", "harmlessness"]
DE_HEADER = ["id", *(f"{text}_{code}" for text in ("question", "answer") for code in ("de", "en", "fr")), *RISKS]
COUNTS = "[1, 5, 9, 45, 19]"


def ja_row(id: str = "ja1", **changes: str) -> list[str]:
    texts = [id, Q_JA, Q_EN, Q_FR, A_JA, A_EN, A_FR, "TRUE", "FALSE", "FALSE"]
    notes = ["薬の種類による。", "It depends on the drug.", "", "", "", ""]
    return [changes.get(name, value) for name, value in zip(JA_HEADER, [*texts, *notes, *[COUNTS] * 3], strict=True)]


def de_row(id: str = "de1", **changes: str) -> list[str]:
    texts = [id, Q_DE, Q_EN, Q_FR, A_DE, A_EN, A_FR, "FALSE", "TRUE", "FALSE"]
    return [changes.get(name, value) for name, value in zip(DE_HEADER, texts, strict=True)]


def to_csv(rows: Sequence[Sequence[str]], delimiter: str = ",", end: str = "\r\n") -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter, lineterminator=end).writerows(rows)
    return stream.getvalue()


def write_csv(
    path: Path, rows: Sequence[Sequence[str]], encoding: str = "utf-8", delimiter: str = ",", end: str = "\r\n"
) -> Path:
    path.write_bytes(to_csv(rows, delimiter, end).encode(encoding))
    return path


def write_xlsx(path: Path, **sheets: Sequence[Sequence[object]]) -> Path:
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.worksheets[0])
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    book.save(path)
    return path


@pytest.fixture
def make() -> SimpleNamespace:
    return SimpleNamespace(
        csv=write_csv,
        xlsx=write_xlsx,
        ja_row=ja_row,
        de_row=de_row,
        text=to_csv,
        JA=JA_HEADER,
        DE=DE_HEADER,
        COUNTS=COUNTS,
    )


@pytest.fixture
def refused():
    """Loads a data set that must be refused, and returns the error."""
    from dspy_mama.core.errors import DeclarationError
    from dspy_mama.datasets import load_pairs
    from dspy_mama.settings import DataSettings

    def load(name: str, path: Path | None, **settings: object) -> DeclarationError:
        with pytest.raises(DeclarationError) as caught:
            load_pairs(DataSettings(name=name, path=None if path is None else str(path), **settings))
        return caught.value

    return load
