"""Self-consistency: independent chains of thought, and the answer that most of them reach (Wang et al., 2023)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import dspy

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.lm.module import AsyncModule, at_temperature, bind_lms, check_lms, lm_of
from dspy_mama.lm.predict import Reading, StructuredPredict, reading_of
from dspy_mama.lm.repeats import for_repeat
from dspy_mama.lm.schema import FieldSpec, field_specs
from dspy_mama.lm.usage import CallUsage, total
from dspy_mama.systems.baselines.result import Attempt, BaselineResult, with_result
from dspy_mama.systems.baselines.single import reasoned
from dspy_mama.systems.baselines.synonyms import SynonymMerger
from dspy_mama.systems.baselines.voting import Normaliser, groups, majority, merge, pooled, same_text

ROLLOUT_BASE: Final = 1_000_000
"""Paths draw from rollout ids of their own: a cache must not hand one path the reply of another, or of a repeat."""

MERGED_NAMES: Final = 20
"""Distinct names that the merger is shown, most votes first."""


class SelfConsistency(AsyncModule):
    """Answers several times, independently, and takes the majority of each voted field.

    Fields that are voted on: those named, else every closed one (bool, Literal), else the first text. Equal votes:
    closed fields by value, texts by `normalise` and then, with `merge_synonyms`, by an LM. Ties go to the answer that
    was given first. Lists of texts are merged by votes; all other fields come from the first path that voted with the
    majority on most fields. A path that could not be read has no vote. Of a signature whose outputs are lists of texts
    alone, no field is voted on and the lists are merged.

    The paths are independent samples, side by side. (The paper's code draws them in one shared chat, where each
    sees those before it.)
    """

    def __init__(
        self,
        signature: Any,
        *,
        paths: int = 10,
        temperature: float | None = 0.7,
        vote: Sequence[str] = (),
        normalise: Normaliser = same_text,
        merge_synonyms: bool = False,
        role: str = "solver",
        lm: Any = None,
    ) -> None:
        """Makes the program.

        Args:
            signature: Any DSPy signature whose outputs `StructuredPredict` reads.
            paths: Independent answers, at least 1.
            temperature: 0 to 2; None = the LM's own.
            vote: Fields to vote on; empty = as the class says.
            normalise: Gives the form under which texts count as equal.
            merge_synonyms: Ask an LM which of the voted texts mean the same.
            role: Role whose LM answers.
            lm: A `dspy.LM`; None = `dspy.settings.lm` at the call.

        Raises:
            DeclarationError: There are no paths, or a voted field is no output that can be voted on.
        """
        super().__init__()
        if paths < 1:
            raise DeclarationError(f"paths={paths}: self-consistency needs at least one")
        plain = dspy.ensure_signature(signature)
        self.role, self.paths, self.temperature, self.normalise = role, paths, temperature, normalise
        self.vote = _voted(field_specs(plain), vote)
        self.outputs = tuple(plain.output_fields)
        self.answer = StructuredPredict(reasoned(plain), role=role)
        self.merger = SynonymMerger(role=role) if merge_synonyms else None
        if lm is not None:
            bind_lms(self, {role: lm})

    def set_lms(self, lms: Mapping[str, Any]) -> SelfConsistency:
        """Binds LMs to the program's role and returns the program.

        Raises:
            DeclarationError: A role is unknown, or what is given for it is no LM.
        """
        check_lms(lms, (self.role,))
        bind_lms(self, lms)
        return self

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Answers along every path and takes the vote.

        Args:
            **inputs: The signature's inputs.

        Returns:
            The signature's outputs and `reasoning`; `result_of` gives every path. A voted bool has as its probability
            the share of readable paths that voted true.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        predictions = await asyncio.gather(*(self._path(number, inputs) for number in range(self.paths)))
        readings = [reading_of(prediction) for prediction in predictions]
        specs = {spec.name: spec for spec in field_specs(self.answer.signature)}
        ballots: dict[str, list[int | None]] = {}
        merged, notes = CallUsage(), list[str]()
        for name in self.vote:
            ballots[name], spent, note = await self._ballot(name, readings, specs[name])
            merged, notes = merged + spent, notes + note
        winners = {name: majority(ballot) for name, ballot in ballots.items()}
        leader = _leader(ballots, winners, len(readings))
        reading = self._combine(readings, ballots, winners, leader, specs)
        usage = {"solver": total(r.usage for r in readings)} | ({"merger": merged} if self.merger else {})
        first = next(iter(ballots.values()), [None] * len(readings))
        attempts = tuple(
            Attempt(
                place + 1,
                "path",
                found,
                group=None if first[place] is None else int(first[place] or 0) + 1,
                chosen=place == leader,
            )
            for place, found in enumerate(readings)
        )
        values = dict(predictions[leader].items()) | {
            name: _native(specs[name], reading.value(name)) for name in specs if specs[name].kind != "probability"
        }
        return with_result(dspy.Prediction(**values), BaselineResult(reading, attempts, "vote", usage, tuple(notes)))

    async def _path(self, number: int, inputs: Mapping[str, Any]) -> dspy.Prediction:
        lm = lm_of(self.answer)
        settings: dict[str, Any] = {"config": at_temperature(lm, self.temperature)}
        if isinstance(lm, dspy.BaseLM):
            repeat = getattr(lm, "kwargs", {}).get("rollout_id") or 0
            settings["lm"] = for_repeat(lm, ROLLOUT_BASE + repeat * 1000 + number)
        return await self.answer.acall(**settings, **inputs)

    async def _ballot(
        self, name: str, readings: Sequence[Reading], spec: FieldSpec
    ) -> tuple[list[int | None], CallUsage, list[str]]:
        """Returns the group of each path's vote on one field."""
        votes = [reading.value(name) for reading in readings]
        key: Callable[[Any], Any] = self.normalise if spec.kind == "text" else repr
        found = groups(votes, key)
        distinct = list(dict.fromkeys(group for group in found if group is not None))
        if self.merger is None or spec.kind != "text" or len(distinct) < 2:
            return found, CallUsage(), []
        distinct = sorted(distinct, key=lambda group: (-found.count(group), group))[:MERGED_NAMES]
        outcome, usage = await self.merger.acall([str(votes[group]) for group in distinct])
        if isinstance(outcome, Unscored):
            return found, usage, [f"synonyms of {name} were not merged: {outcome.reason}"]
        pairs = [(distinct[place], distinct[first]) for place, first in enumerate(outcome.value)]
        return merge(found, pairs), usage, []

    def _combine(
        self,
        readings: Sequence[Reading],
        ballots: Mapping[str, Sequence[int | None]],
        winners: Mapping[str, int | None],
        leader: int,
        specs: Mapping[str, FieldSpec],
    ) -> Reading:
        outcomes: dict[str, Outcome[Any]] = {}
        probabilities: dict[str, float | None] = {}
        for name, spec in specs.items():
            if name in winners:
                winner = winners[name]
                outcomes[name] = _missing(readings, name) if winner is None else readings[winner].outcomes[name]
                if spec.kind == "bool":
                    cast = [bool(r.value(name)) for r in readings if r.value(name) is not None]
                    probabilities[name] = sum(cast) / len(cast) if cast else None
            elif spec.kind == "texts":
                lists = [reading.value(name) for reading in readings]
                known = [entries for entries in lists if entries is not None]
                pool = pooled(known, self.normalise, spec.limit)
                outcomes[name] = Scored(pool) if known else _missing(readings, name)
            else:
                outcomes[name] = readings[leader].outcomes[name]
        return Reading(outcomes, probabilities, total(r.usage for r in readings), readings[leader].model)


def _voted(specs: Sequence[FieldSpec], named: Sequence[str]) -> tuple[str, ...]:
    votable = {spec.name: spec.kind for spec in specs if spec.kind in ("bool", "enum", "text")}
    if wrong := sorted(set(named) - set(votable)):
        raise DeclarationError(f"vote: {', '.join(wrong)} cannot be voted on; outputs that can: {', '.join(votable)}")
    chosen = tuple(named) or tuple(name for name, kind in votable.items() if kind != "text") or tuple(votable)[:1]
    if not chosen and not any(spec.kind == "texts" for spec in specs):  # lists are merged by votes of their entries
        raise DeclarationError("the signature has no output that can be voted on (bool, Literal, str or list[str])")
    return chosen


def _leader(ballots: Mapping[str, Sequence[int | None]], winners: Mapping[str, int | None], paths: int) -> int:
    """Returns the path that voted with the majority on most fields, the first of several."""

    def agreement(place: int) -> int:
        return sum(winners[name] is not None and ballots[name][place] == winners[name] for name in ballots)

    return max(range(paths), key=lambda place: (agreement(place), -place))


def _missing(readings: Sequence[Reading], name: str) -> Unscored:
    """Returns why no path has a field: what the LM did, and a fault on the way only where there was nothing else."""
    found = [r.outcomes[name] for r in readings]
    missing = [outcome for outcome in found if isinstance(outcome, Unscored)]
    told = [outcome for outcome in missing if outcome.kind != "infra"]
    return (told or missing or [Unscored("parse", f"field {name!r}: no path names one")])[0]


def _native(spec: FieldSpec, value: Any) -> Any:
    return list(value) if spec.kind in ("texts", "numbers") and value is not None else value
