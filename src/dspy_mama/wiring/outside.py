"""From the command line's words to gold labels and predictions that were made anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets import LOADERS, LabelFile, load_pairs, read_labels
from dspy_mama.datasets.label_columns import Role, plain
from dspy_mama.scoring import labels_from_records
from dspy_mama.scoring.labels import LabelSource
from dspy_mama.wiring.rebuild import require_audit


def read_answers(
    words: Sequence[str],
    role: Role,
    *,
    columns: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
    phase: LabelSource = "final",
) -> list[LabelFile]:
    """Reads what `--gold` or `--pred` names.

    Args:
        words: Files, run folders or record files; `medical=FILE` for a file of one domain; for gold also the name of a
            data set (`sample`, `kqa`, `mednlp_chat`).
        role: Gold labels or predictions.
        columns: Field -> column, where names do not tell.
        overrides: Settings of a data set, such as `data.path=FOLDER`.
        phase: Which verdicts of a run are meant.

    Raises:
        DeclarationError: Something is not there or cannot be read.
    """
    if role == "gold" and overrides and not any(_is_data_set(word) for word in words):
        raise DeclarationError(f"not understood: {' '.join(overrides)} (settings go with a data set as gold)")
    return [_one(word, role, columns or {}, overrides, phase) for word in words]


def _is_data_set(word: str) -> bool:
    return word in LOADERS and word != "table" and not Path(word).exists()


def _one(word: str, role: Role, columns: Mapping[str, str], overrides: Sequence[str], phase: LabelSource) -> LabelFile:
    domain, mark, rest = word.partition("=")
    only = domain if mark and domain in DOMAINS else None
    path = Path(rest if only else word).expanduser()
    if role == "gold" and only is None and _is_data_set(word):
        return _data_set(word, overrides)
    if path.is_dir():
        path = path / "records.jsonl"
    if is_record_file(path):
        return _from_records(path, role, phase)
    return read_labels(path, role, columns=columns, only=only)


def is_record_file(path: Path) -> bool:
    """Tells whether a file holds records of this library, one a line, by its first line."""
    import json

    if path.suffix.lower() != ".jsonl" or not path.is_file():
        return False
    with path.open("rb") as stream:
        line = next((line for line in stream if line.strip()), b"")
    try:
        record = json.loads(line)
    except ValueError:
        return False
    return isinstance(record, dict) and isinstance(record.get("phases"), dict) and "final_phase" in record


def read_record_file(path: Path) -> tuple[dict[str, Any], ...]:
    """Returns the records of a file, one a pair, in the order of the data.

    Raises:
        DeclarationError: The file holds none.
        DataError: A line is not a record.
    """
    from dspy_mama.tracking.records import in_data_order, read_records

    records = in_data_order(read_records(path).records)
    if not records:
        raise DeclarationError(f"{path}: holds no record")
    return records


def _from_records(path: Path, role: Role, phase: LabelSource) -> LabelFile:
    records = read_record_file(path)
    require_audit(records, str(path), "score")
    labels = labels_from_records(records, phase)
    values = labels.gold if role == "gold" else labels.predicted
    texts = [str(record.get("question") or record["id"]) for record in records]
    facts = {"name": path.name, "rows": len(records), "phase": phase}
    ids, repeats, chances = labels.ids, labels.repeats, labels.probability
    if role == "gold":  # repeats of a pair say the same of it
        first = sorted({name: row for row, name in reversed(list(enumerate(ids)))}.values())
        ids, repeats, values = tuple(ids[row] for row in first), np.zeros(len(first), np.int64), values[first]
        texts = [texts[row] for row in first]
    return LabelFile(
        str(path),
        ids,
        repeats,
        {domain: values[:, column] for column, domain in enumerate(DOMAINS)},
        {} if role == "gold" else {domain: chances[:, column] for column, domain in enumerate(DOMAINS)},
        {"question": texts},
        facts,
    )


def _data_set(name: str, overrides: Sequence[str]) -> LabelFile:
    from dspy_mama.wiring.compose import compose

    loaded = load_pairs(compose([f"data={name}", *overrides]).data)
    codes = {True: 1, False: 0, None: -1}
    return LabelFile(
        f"data={name}",
        tuple(pair.id for pair in loaded.pairs),
        np.zeros(len(loaded.pairs), dtype=np.int64),
        {d: np.array([codes[pair.gold.get(d)] for pair in loaded.pairs], dtype=np.int8) for d in DOMAINS},
        {},
        {"question": [pair.question for pair in loaded.pairs]},
        {"name": name, "rows": len(loaded.pairs), "label_definition": loaded.facts["label_definition"]},
    )


def refuse_same_columns(gold: Sequence[LabelFile], predictions: Sequence[LabelFile]) -> None:
    """Refuses to hold a column against itself, which would score as perfect.

    Raises:
        DeclarationError: A column of a file would be both gold and prediction.
    """
    for own in gold:
        for other in predictions:
            if own.name != other.name:
                continue
            columns, said = own.facts.get("columns") or {}, other.facts.get("columns") or {}
            same = [columns[domain] for domain in DOMAINS if domain in columns and columns[domain] == said.get(domain)]
            if same:
                raise DeclarationError(
                    f"{own.name}: the column {same[0]!r} would be both gold label and prediction; give gold labels of "
                    "another file (--gold), or name the columns (--gold-column medical=COLUMN, --pred-column ...)"
                )


def cluster_texts(gold: LabelFile, column: str | None) -> list[str] | None:
    """Returns the column of the gold file whose equal cells are resampled together.

    Raises:
        DeclarationError: The file has no such column.
    """
    if column is None:
        return None
    for name, texts in gold.extra.items():
        if plain(name) == plain(column):
            return [" ".join(text.split()) for text in texts]
    raise DeclarationError(f"--cluster {column}: {gold.name} has the columns: {', '.join(gold.extra)}")
