"""Gold pairs divided as the settings say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.datasets.stratified import read_splits, stratified_split
from dspy_mama.settings import OptimizerSettings


def split_pairs(pairs: Sequence[QAPair], settings: OptimizerSettings) -> dict[str, list[QAPair]]:
    """Divides gold pairs as the settings say: by file, or stratified by label and hash of the id."""
    own = settings.split
    if own.file is not None:
        return read_splits(own.file, pairs)
    test = 1 - own.train - own.validation
    return stratified_split(pairs, {"train": own.train, "validation": own.validation, "test": test}, own.salt)


def check_splits(splits: Mapping[str, Sequence[QAPair]]) -> None:
    """Refuses splits that leak, or leave nothing to learn from or to choose on.

    Raises:
        DeclarationError: A pair is in two splits, or a split is empty.
    """
    for name in ("train", "validation"):
        if not splits.get(name):
            raise DeclarationError(
                f"the {name} split is empty: compiling needs gold pairs to learn from and to choose on"
            )
    seen: dict[str, str] = {}
    for name, pairs in splits.items():
        for pair in pairs:
            if seen.setdefault(pair.id, name) != name:
                raise DeclarationError(f"pair {pair.id!r} is in {seen[pair.id]} and in {name}: its label would leak")
