"""K-QA: answers of four chatbots to real patients' questions, each claim judged by three physicians.

Source: Manes et al., K-QA: A Real-World Medical Q&A Benchmark, 2024, arXiv:2401.14493 (MIT licence).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from dspy_mama.core.cases import Domain, QAPair
from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.core.ids import content_hash
from dspy_mama.datasets import cells
from dspy_mama.datasets.loading import Loaded, columns_in, given_path
from dspy_mama.datasets.rows import Reading
from dspy_mama.datasets.tables import Table, read_tables
from dspy_mama.settings import DataSettings

FILE: Final = "NLI_medical_annotator.csv"
_COLUMNS: Final = (
    "Question",
    "llm_x",
    "answer",
    "claim",
    "category_x",
    "majority_label",
    "label_0",
    "label_1",
    "label_2",
)
_LABELS: Final = ("Entailment", "Neutral", "Contradiction")
_CATEGORIES: Final = ("Must_have", "Nice_to_have")
_PLAIN: Final = (
    "medical: the physicians' majority calls any claim a Contradiction of the answer; no ethical or legal labels"
)
_STRICT: Final = f"{_PLAIN}; strict: a Neutral on a Must_have claim (a crucial point is missing) is risky too"


def load_kqa(settings: DataSettings) -> Loaded:
    """Loads K-QA's judged answers with the physicians' labels as medical gold.

    Args:
        settings: `path` (the data set's folder, its `dataset` folder, or the csv file itself), `strict`.

    Raises:
        DeclarationError: Nothing is at the path, or a setting does not apply to K-QA.
        DataError: The file is not K-QA's.
    """
    if settings.columns or settings.language != "en":
        raise DeclarationError("data=kqa is English with fixed columns; leave out data.columns and data.language")
    (table,) = read_tables(_find(given_path(settings)), settings.encoding)
    if missing := [column for column in _COLUMNS if column not in table.columns]:
        reason = f"K-QA's {', '.join(missing)} not there; {columns_in(table)}"
        raise DataError(table.name, [Fault(None, None, reason)])
    reading = Reading()
    answers: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    broken = set()
    for number, claim in table:
        key = (claim["Question"], claim["llm_x"], claim["answer"])
        answers.setdefault(key, []).append(claim)
        if not _check(table, number, claim, reading):
            broken.add(key)
    pairs = [_pair(key, claims, settings.strict) for key, claims in answers.items() if key not in broken]
    return Loaded(pairs, reading, (table,), _STRICT if settings.strict else _PLAIN)


def _find(path: Path) -> Path:
    if path.is_file():
        return path
    for candidate in (path / "dataset" / FILE, path / FILE):
        if candidate.is_file():
            return candidate
    raise DeclarationError(f"data.path: there is no dataset/{FILE} in {str(path)!r}; give K-QA's folder or that file")


def _check(table: Table, number: int, claim: dict[str, str], reading: Reading) -> bool:
    """Notes every fault of a row and tells whether there was none."""
    where, before = (table.name, number), len(reading.faults)
    for column in _COLUMNS:
        if why := table.marks.get((number, column)):
            reading.add_fault(where, column, why)
    for column in ("Question", "answer", "claim"):
        if cells.is_blank(claim[column]):
            reading.add_fault(where, column, "empty")
        elif why := cells.text_fault(claim[column]):
            reading.add_fault(where, column, why)
    for column, allowed in ((c, _CATEGORIES if c == "category_x" else _LABELS) for c in _COLUMNS[4:]):
        if claim[column] not in allowed:
            reading.add_fault(where, column, f"{cells.shorten(claim[column])} is not one of {', '.join(allowed)}")
    if len(reading.faults) == before:
        votes = Counter(claim[f"label_{judge}"] for judge in range(3))
        if votes[claim["majority_label"]] < 2:
            reading.add_fault(where, "majority_label", "is not the majority of label_0, label_1 and label_2")
    return len(reading.faults) == before


def _pair(key: tuple[str, str, str], claims: list[dict[str, str]], strict: bool) -> QAPair:
    question, system, answer = key
    contradicted = [claim["claim"] for claim in claims if claim["majority_label"] == "Contradiction"]
    absent = [c["claim"] for c in claims if (c["majority_label"], c["category_x"]) == ("Neutral", "Must_have")]
    gold: dict[Domain, bool | None] = {
        "medical": bool(contradicted or (strict and absent)),
        "ethical": None,
        "legal": None,
    }
    reasons = [f"Contradicts: {claim}" for claim in contradicted]
    if strict:
        reasons += [f"Does not say: {claim}" for claim in absent]
    notes: dict[Domain, str] = {"medical": "\n".join(reasons)} if reasons else {}
    labels = Counter(claim["majority_label"] for claim in claims)
    extra = {"system": system, "claims": {label.casefold(): labels[label] for label in _LABELS}}
    # The texts make the id: rows in another order, or a part of the file, give the same ids.
    name = f"kqa-{content_hash(chr(10).join(key), 10)}"
    return QAPair(name, question, answer, "en", gold, notes, "kqa", extra)
