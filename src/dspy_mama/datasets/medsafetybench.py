"""MedSafetyBench: harmful medical requests by principle of medical ethics, each with a safe answer.

Source: Han et al., MedSafetyBench: Evaluating and Improving the Medical Safety of Large Language Models, NeurIPS 2024,
arXiv:2403.03744 (MIT licence; its authors ask that it be used for research only).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from dspy_mama.core.chat_request import ChatRequest
from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.datasets.loading import columns_in, given_path
from dspy_mama.datasets.tables import read_tables
from dspy_mama.settings import DataSettings

PRINCIPLES: Final = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
"""Principle by the category number of a file's name, 1 to 9."""

SPLITS: Final = MappingProxyType(
    {
        "gpt4_balanced": (("train", "gpt4"), ("test", "gpt4")),
        "test": (("test", "gpt4"), ("test", "llama2")),
        "test_gpt4": (("test", "gpt4"),),
        "test_llama2": (("test", "llama2"),),
        "train_gpt4": (("train", "gpt4"),),
    }
)
"""Which folders a split is made of. Only `gpt4_balanced` has 100 requests a principle; `test` has 74 to 114."""

_REQUEST: Final = "harmful_medical_request"
_SAFE: Final = "safe_response"


def load_medsafetybench(settings: DataSettings) -> tuple[list[ChatRequest], list[dict[str, Any]]]:
    """Loads the requests of a split, going round the principles, so that any `limit` covers them evenly.

    Args:
        settings: `path` (the folder that holds `datasets`, or `datasets` itself), `split` (None = `gpt4_balanced`),
            and `columns.answer=safe_response` to mend the data set's own answers instead of having them written.

    Returns:
        The requests, with ids such as `gpt4-test-3-17` (writer, part, category, row), and the facts of their files.

    Raises:
        DeclarationError: Nothing is at the path, or a setting does not apply.
        DataError: A file is missing, or is not of this form.
    """
    split = settings.split or "gpt4_balanced"
    if split not in SPLITS:
        raise DeclarationError(f"data.split: {split!r} is none of {', '.join(SPLITS)}")
    if settings.language != "en" or set(settings.columns.items()) - {("answer", _SAFE)}:
        raise DeclarationError(
            f"data=medsafetybench is English with fixed columns; only data.columns.answer={_SAFE} may be set"
        )
    root = _find(given_path(settings))
    groups, facts = [], []
    for number in range(1, len(PRINCIPLES) + 1):
        found: list[ChatRequest] = []
        for part, writer in SPLITS[split]:
            requests, fact = _read(root / part / writer, number, part, writer, settings)
            found += requests
            facts.append(fact)
        groups.append(found)
    return _round_robin(groups), facts


def _find(path: Path) -> Path:
    for candidate in (path / "datasets", path):
        if (candidate / "test").is_dir() or (candidate / "train").is_dir():
            return candidate
    raise DeclarationError(
        f"data.path: {str(path)!r} holds no datasets/test or datasets/train; give MedSafetyBench's folder"
    )


def _read(
    folder: Path, number: int, part: str, writer: str, settings: DataSettings
) -> tuple[list[ChatRequest], dict[str, Any]]:
    file = folder / f"med_safety_demonstrations_category_{number}.csv"
    if not file.is_file():
        raise DataError(str(file), [Fault(None, None, f"is not there; data.split={settings.split} needs it")])
    (table,) = read_tables(file, settings.encoding)
    if missing := [column for column in (_REQUEST, _SAFE) if column not in table.columns]:
        raise DataError(table.name, [Fault(None, None, f"no column {', '.join(missing)}; {columns_in(table)}")])
    faults = [Fault(row, _REQUEST, "is empty") for row, cells in table if not cells[_REQUEST].strip()]
    if faults:
        raise DataError(table.name, faults)
    requests = [
        ChatRequest(
            id=f"{writer}-{part}-{number}-{place}",
            question=cells[_REQUEST],
            answer=cells[_SAFE] if "answer" in settings.columns else None,
            principle=PRINCIPLES[number - 1],
            language="en",
            source="medsafetybench",
            extra=MappingProxyType({_SAFE: cells[_SAFE]}),
        )
        for place, (_, cells) in enumerate(table)
    ]
    return requests, {**dict(table.facts), "name": f"{part}/{writer}/{file.name}"}


def _round_robin(groups: Sequence[Sequence[ChatRequest]]) -> list[ChatRequest]:
    return [request for row in zip_longest(*groups) for request in row if request is not None]
