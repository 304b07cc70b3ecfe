"""Which of several names mean the same: asked of an LM, after a normaliser has joined spellings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy

from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.lm.module import AsyncModule, at_temperature, lm_of
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.lm.usage import CallUsage


class MergeSynonyms(dspy.Signature):
    """Sort the numbered names into groups that mean exactly the same thing.

    Names are in one group when they are synonyms, abbreviations or spellings of one another. A subtype is not the
    same as its family, and a cause is not the same as its consequence. Give each name the number of the first name in
    the list that means the same; a name without an earlier synonym gets its own number.
    """

    names: str = dspy.InputField(desc="one numbered name a line")
    groups: list[int] = dspy.OutputField(desc="one number a name, in their order", max_length=20)


class SynonymMerger(AsyncModule):
    """Finds synonyms among names; a reply that is no such sorting merges nothing."""

    def __init__(self, *, role: str = "solver") -> None:
        """Makes the merger.

        Args:
            role: Role whose LM answers.
        """
        super().__init__()
        self.sort = StructuredPredict(MergeSynonyms, role=role)

    async def aforward(self, names: Sequence[str]) -> tuple[Outcome[list[int]], CallUsage]:
        """Returns per name the place (from 0) of the first name that means the same, and what it cost.

        Args:
            names: Distinct names, at most 20.
        """
        listed = "\n".join(f"{number}. {name}" for number, name in enumerate(names, 1))
        config: dict[str, Any] = at_temperature(lm_of(self.sort), 0.0)
        prediction = await self.sort.acall(names=listed, config=config, choices={"groups": range(1, len(names) + 1)})
        reading = reading_of(prediction)
        found = reading.outcomes["groups"]
        if isinstance(found, Unscored):
            return found, reading.usage
        return _checked(list(found.value), len(names)), reading.usage


def _checked(numbers: list[int], length: int) -> Outcome[list[int]]:
    if len(numbers) != length or any(not 1 <= number <= place for place, number in enumerate(numbers, 1)):
        return Unscored("parse", f"{numbers} does not give each of {length} names itself or an earlier name")
    return Scored([number - 1 for number in numbers])
