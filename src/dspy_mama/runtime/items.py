"""What a run needs to know of its items: by which key each is known, and what a record of a failed one looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from dspy_mama.core.cases import Phase, QAPair
from dspy_mama.runtime.failures import failure_record, identity, without_texts
from dspy_mama.runtime.keys import pair_key

Item = TypeVar("Item", contravariant=True)


class ItemKind(Protocol[Item]):
    """One kind of item that a run carries out: pairs to audit, requests to answer, cases to diagnose."""

    @property
    def noun(self) -> str:
        """What one is called in messages, such as `pair`."""

    def key(self, item: Item, repeat: int) -> str:
        """Returns the hash of an item's content and of which repeat it is; a resumed run knows it by this."""

    def identity(self, item: Item, repeat: int, store_text: bool) -> dict[str, Any]:
        """Returns the part of a record that comes from the item itself."""

    def failed(self, item: Item, error: BaseException, repeat: int, store_text: bool) -> dict[str, Any]:
        """Returns the record of an item whose work failed: every outcome `infra`, so that a resumed run tries again."""

    def without_texts(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a record without the texts of patients and chatbots."""


@dataclass(frozen=True, slots=True)
class PairKind:
    """Pairs of question and answer, as the audit takes them.

    Attributes:
        final_phase: Phase whose verdicts count in this run, for the records of failed pairs.
    """

    final_phase: Phase = "consensus"

    @property
    def noun(self) -> str:
        """`pair`."""
        return "pair"

    def key(self, item: QAPair, repeat: int) -> str:
        """Returns `pair_key`."""
        return pair_key(item, repeat)

    def identity(self, item: QAPair, repeat: int, store_text: bool) -> dict[str, Any]:
        """Returns id, source, language, gold and, where they are kept, the texts."""
        return identity(item, repeat, store_text)

    def failed(self, item: QAPair, error: BaseException, repeat: int, store_text: bool) -> dict[str, Any]:
        """Returns a record whose verdicts are all `infra`."""
        return failure_record(item, error, repeat=repeat, final_phase=self.final_phase, store_text=store_text)

    def without_texts(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the record without question, answer, notes and queries."""
        return without_texts(record)
