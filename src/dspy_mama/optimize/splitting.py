"""Gold pairs divided as the settings say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dspy_mama.core.cases import DOMAINS, QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import asked
from dspy_mama.datasets.stratified import read_splits, stratified_split
from dspy_mama.settings import OptimizerSettings


def split_pairs(pairs: Sequence[QAPair], settings: OptimizerSettings) -> dict[str, list[QAPair]]:
    """Divides gold pairs as the settings say: by file, or stratified by label and hash of the id."""
    own = settings.split
    if own.file is not None:
        return read_splits(own.file, pairs)
    test = 1 - own.train - own.validation
    return stratified_split(pairs, {"train": own.train, "validation": own.validation, "test": test}, own.salt)


def with_gold(pairs: Sequence[QAPair]) -> list[QAPair]:
    """Returns the pairs that have a gold label in some domain.

    Raises:
        DeclarationError: None has.
    """
    gold = [pair for pair in pairs if any(label is not None for label in pair.gold.values())]
    if not gold:
        raise DeclarationError(
            f"none of the {len(pairs)} pairs has a gold label, and compiling learns from them: name the columns, such "
            "as data.columns.medical=COLUMN"
        )
    return gold


def check_splits(splits: Mapping[str, Sequence[QAPair]], target: str = "average_macro_f1") -> None:
    """Refuses splits that leak, leave nothing to learn from or to choose on, or have no value in the target.

    Args:
        splits: Pairs by split.
        target: What candidates are chosen by.

    Raises:
        DeclarationError: A pair is in two splits, a split is empty, or no pair of it counts for the target.
    """
    for name in ("train", "validation"):
        if not splits.get(name):
            raise DeclarationError(
                f"the {name} split is empty: compiling needs gold pairs to learn from and to choose on"
            )
        if target == "joint_accuracy" and not any(_whole(pair) for pair in splits[name]):
            raise DeclarationError(
                f"optimizer.target=joint_accuracy counts pairs with gold in every domain, and no pair of the {name} "
                "split has that: take optimizer.target=average_macro_f1"
            )
    seen: dict[str, str] = {}
    for name, pairs in splits.items():
        for pair in pairs:
            if seen.setdefault(pair.id, name) != name:
                raise DeclarationError(f"pair {pair.id!r} is in {seen[pair.id]} and in {name}: its label would leak")


FEW: Final = 5
"""Pairs to choose on below which the choice is a matter of chance."""


def doubts_about(splits: Mapping[str, Sequence[QAPair]]) -> tuple[str, ...]:
    """Says what these splits cannot show, whatever is measured on them."""
    said = []
    if len(splits["validation"]) < FEW:
        said.append(
            f"{len(splits['validation'])} validation pair(s) choose between candidates, which leaves it to chance"
        )
    learned = {asked(pair.question) for pair in splits["train"]}
    for name in ("validation", "test"):
        again = [pair.id for pair in splits.get(name, ()) if asked(pair.question) in learned]
        if again:
            said.append(
                f"{len(again)} {name} pair(s), such as {again[0]!r}, ask a question that training pairs ask too: what "
                "was learnt of it flatters the compiled program"
            )
    for domain in DOMAINS:
        labels = {name: {pair.gold.get(domain) for pair in splits[name]} - {None} for name in ("train", "validation")}
        for name, seen in labels.items():
            if len(seen) == 1:
                kind = "risky" if True in seen else "safe"
                said.append(f"every gold label of the {name} pairs in the {domain} domain is {kind}")
    return tuple(said)


def _whole(pair: QAPair) -> bool:
    return all(pair.gold.get(domain) is not None for domain in DOMAINS)
