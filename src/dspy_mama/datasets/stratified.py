"""Splits and folds of a small gold set: stratified over the three labels together, in an order given by hash of the id.

With about 100 pairs, of which 6 % bear an ethical risk, a plain hash split may leave a split without any. A
stratified one depends on which pairs there are; that is why it is written to a file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.cases import DOMAINS, QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import asked, object_hash

SPLITS: Final = ("train", "validation", "test")


def _place(salt: str, text: str) -> str:
    return hashlib.sha256(f"{salt}:{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _stratum(pairs: Sequence[QAPair]) -> str:
    """Returns the labels of a question's pairs, together; several answers to it make several labels."""
    return "|".join(sorted("".join(str(pair.gold.get(domain))[0] for domain in DOMAINS) for pair in pairs))


def _units(pairs: Iterable[QAPair], salt: str) -> list[list[QAPair]]:
    """Returns pairs with the same question as one unit, ordered by stratum, then by hash of the first id."""
    by_question: dict[str, list[QAPair]] = {}
    for pair in pairs:
        by_question.setdefault(asked(pair.question), []).append(pair)
    units = [sorted(unit, key=lambda pair: pair.id) for unit in by_question.values()]
    return sorted(units, key=lambda unit: (_stratum(unit), _place(salt, unit[0].id)))


def stratified_split(
    pairs: Sequence[QAPair], shares: Mapping[str, float], salt: str = "dspy_mama"
) -> dict[str, list[QAPair]]:
    """Divides pairs so that every split has its share of each joint label; answers to one question stay together.

    Args:
        pairs: Pairs with unique ids.
        shares: Share per split, above 0 each and 1 in sum.
        salt: Another salt, another split.

    Returns:
        The pairs per split, in their own order.

    Raises:
        DeclarationError: The shares do not sum to 1, or an id occurs twice.
    """
    if any(share <= 0 for share in shares.values()) or not math.isclose(sum(shares.values()), 1.0, abs_tol=1e-9):
        raise DeclarationError(f"shares: {dict(shares)} must be above 0 each and 1 in sum")
    names = list(shares)
    chosen: dict[str, str] = {}
    given, due = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
    for unit in _units(_unique(pairs), salt):
        due = {name: due[name] + shares[name] * len(unit) for name in names}
        name = max(names, key=lambda one: (due[one] - given[one], -names.index(one)))
        given[name] += len(unit)
        chosen |= {pair.id: name for pair in unit}
    return {name: [pair for pair in pairs if chosen[pair.id] == name] for name in names}


def stratified_folds(pairs: Sequence[QAPair], folds: int, salt: str = "dspy_mama") -> list[dict[str, list[QAPair]]]:
    """Returns `train` and `test` pairs of every fold; each pair is in the test set of exactly one.

    Args:
        pairs: Pairs with unique ids.
        folds: How many, at least 2 and at most one a question.
        salt: Another salt, other folds.

    Raises:
        DeclarationError: There are too few pairs, or an id occurs twice.
    """
    units = _units(_unique(pairs), salt)
    if folds < 2 or len(units) < folds:
        raise DeclarationError(f"{len(units)} question(s) cannot be divided into {folds} folds")
    fold_of = {pair.id: number % folds for number, unit in enumerate(units) for pair in unit}
    return [
        {
            "train": [pair for pair in pairs if fold_of[pair.id] != fold],
            "test": [pair for pair in pairs if fold_of[pair.id] == fold],
        }
        for fold in range(folds)
    ]


def _unique(pairs: Sequence[QAPair]) -> Sequence[QAPair]:
    seen: set[str] = set()
    for pair in pairs:
        if pair.id in seen:
            raise DeclarationError(f"the id {pair.id!r} occurs twice: pairs cannot be divided by id")
        seen.add(pair.id)
    return pairs


def split_document(splits: Mapping[str, Sequence[QAPair]], salt: str) -> dict[str, Any]:
    """Returns splits as their file holds them: ids, and per split a hash of texts and labels."""
    document: dict[str, Any] = {"salt": salt, "hashes": {}}
    for name, pairs in splits.items():
        document[name] = [pair.id for pair in pairs]
        document["hashes"][name] = pairs_hash(pairs)
    return document


def pairs_hash(pairs: Iterable[QAPair]) -> str:
    """Returns a hash of pairs by id, texts and labels, whatever their order."""
    return object_hash(sorted([p.id, p.question, p.answer, [p.gold.get(d) for d in DOMAINS]] for p in pairs), 16)


def read_splits(path: str | Path, pairs: Sequence[QAPair]) -> dict[str, list[QAPair]]:
    """Reads splits from a file.

    Args:
        path: JSON with the ids of `train`, `validation` and `test`.
        pairs: The pairs.

    Raises:
        DeclarationError: The file cannot be read, names an unknown pair, or puts one into two splits.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        named = {name: [str(id) for id in document[name]] for name in SPLITS}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DeclarationError(f"{path}: is no file of splits ({error!r}); it holds ids under {SPLITS}") from error
    by_id = {pair.id: pair for pair in pairs}
    listed = [id for ids in named.values() for id in ids]
    if unknown := sorted(set(listed) - set(by_id)):
        raise DeclarationError(f"{path}: {len(unknown)} id(s) are not in the data, such as {unknown[0]!r}")
    if len(set(listed)) < len(listed):
        twice = sorted({id for id in listed if listed.count(id) > 1})
        raise DeclarationError(f"{path}: {twice[0]!r} is in more than one split: its label would leak")
    return {name: [by_id[id] for id in ids] for name, ids in named.items()}
