"""A DSPy predictor whose every output field is either read or named as missing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import dspy

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.event_loop import run_sync
from dspy_mama.core.outcomes import Outcome, Scored, Unscored
from dspy_mama.core.reading import is_refusal, open_section, read_fields, strip_reasoning
from dspy_mama.lm.exchange import Failure, Reply, send
from dspy_mama.lm.hosts import refuse_leaving
from dspy_mama.lm.prompt import Message, messages_for, reask_messages
from dspy_mama.lm.schema import FieldSpec, field_specs, json_schema, restrict
from dspy_mama.lm.token_probability import label_probability
from dspy_mama.lm.usage import CallUsage

DECLINED = "the model declined"
"""Reason of a reply without fields that declines the task in plain words."""

REASK_FACTOR = 2
"""The token limit of the one re-ask after a reply that was cut."""

WhenCut = Literal["longer", "again", "keep"]
"""After a reply that was cut: ask once more with twice the limit, with the same limit, or not at all."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one predictor call gave.

    Attributes:
        outcomes: Outcome per output field.
        probabilities: Probability of true per boolean field, where the LM gave one.
        usage: Cost of the call and its re-ask.
        model: Model id as the server resolved it, or None where no reply came.
        cut: Whether a reply was cut at the token limit, also where asking again gave a whole one.
    """

    outcomes: Mapping[str, Outcome[Any]]
    probabilities: Mapping[str, float | None] = field(default_factory=dict)
    usage: CallUsage = field(default_factory=CallUsage)
    model: str | None = None
    cut: bool = False

    def value(self, name: str) -> Any | None:
        """Returns a field's value, or None where it is missing."""
        outcome = self.outcomes[name]
        return outcome.value if isinstance(outcome, Scored) else None


def _fault_of(reply: Reply) -> Unscored | None:
    """Returns why a reply as a whole cannot be read, from its finish reason first."""
    if reply.finish == "content_filter" or reply.refusal:
        return Unscored("refused", "the provider refused or filtered the reply", reply.refusal or reply.text)
    if reply.finish == "length":
        return Unscored("truncated", "the reply was cut at the token limit", reply.text)
    return None


def read_reply(reply: Reply, specs: Sequence[FieldSpec], material: str = "") -> dict[str, Outcome[Any]]:
    """Reads each field of a reply.

    Args:
        reply: The reply.
        specs: The fields that were asked for.
        material: What the LM was shown: an object that it quotes from there is not read.

    Returns:
        An outcome per field; a field that is not required is `Scored(())` when it is missing.
    """
    answer, _ = strip_reasoning(reply.text)
    names = [spec.name for spec in specs]
    found = read_fields(answer, names, material)
    whole = _fault_of(reply)
    if found is None and whole is None:
        kind = "refused" if is_refusal(answer) else "parse"
        reason = DECLINED if kind == "refused" else "no JSON object" if answer else "the reply is empty"
        whole = Unscored(kind, reason, reply.text)  # type: ignore[arg-type]
    if whole is not None and (found is None or whole.kind == "refused"):
        return dict.fromkeys(names, whole)
    if whole is not None and found and (broken := open_section(answer, names)):
        found = {name: value for name, value in found.items() if name != broken}
    outcomes: dict[str, Outcome[Any]] = {}
    for spec in specs:
        value = spec.read(found[spec.name]) if found and spec.name in found else None
        if value is not None:
            outcomes[spec.name] = Scored(value)
        elif not spec.required:
            outcomes[spec.name] = Scored(())
        else:
            stated = f"{found[spec.name]!r} is not readable" if found and spec.name in found else "the field is missing"
            outcomes[spec.name] = whole or Unscored("parse", f"field {spec.name!r}: {stated[:200]}", reply.text)
    return outcomes


def _problems(outcomes: Mapping[str, Outcome[Any]], specs: Sequence[FieldSpec]) -> dict[str, str]:
    return {spec.name: spec.describe() for spec in specs if isinstance(outcomes[spec.name], Unscored)}


def _token_limit(lm: Any, config: Mapping[str, Any]) -> tuple[str, int] | None:
    merged = {**getattr(lm, "kwargs", {}), **config}
    for key in ("max_completion_tokens", "max_tokens"):
        if merged.get(key):
            return key, int(merged[key])
    return None


class StructuredPredict(dspy.Predict):
    """`dspy.Predict` with schema-constrained output, tolerant reading, one re-ask and named outcomes.

    The prediction has every output field (None where it is missing) and `reading`, a `Reading`. Optimisers see an
    ordinary predictor: instructions, demonstrations and LM are its state.
    """

    def __init__(
        self,
        signature: Any,
        *,
        role: str,
        logprobs: bool = True,
        last: Sequence[str] = (),
        when_cut: WhenCut = "longer",
        **config: Any,
    ) -> None:
        """Makes a predictor.

        Args:
            signature: A DSPy signature whose outputs are bool, str, Literal, list[int], list[str] or Noul.
            role: Role whose LM answers, such as `router`, `assessor`, `verifier`, `judge` or `doctor`.
            logprobs: Ask for token probabilities of boolean fields, where the LM returns them.
            last: Output fields described after the material, because they differ between otherwise equal prompts.
            when_cut: What to do about a reply that was cut at the token limit.
            **config: Settings for the LM, as in `dspy.Predict`.

        Raises:
            DeclarationError: An output field has a type that cannot be read.
        """
        super().__init__(signature, **config)
        self.role = role
        self.logprobs = logprobs
        self.last = tuple(last)
        self.when_cut = when_cut
        self.local_only = False  # set by load_program where the program was made with a local LM
        field_specs(self.signature)

    def reset(self) -> None:
        """Drops what was learned and keeps the LM: it is bound to the role, and optimisers reset every copy."""
        lm = getattr(self, "lm", None)
        super().reset()
        self.lm = lm

    def forward(self, **kwargs: Any) -> dspy.Prediction:
        """Runs `aforward` to its end."""
        return run_sync(self.aforward(**kwargs))

    async def aforward(self, *, choices: Mapping[str, Sequence[Any]] | None = None, **kwargs: Any) -> dspy.Prediction:
        """Asks the LM, re-asks once where needed, and reads the reply.

        Args:
            choices: What exists in this call, per list field (such as passage numbers, or names to choose from).
            **kwargs: The signature's inputs, and DSPy's `config`, `demos`, `signature`, `lm`.

        Returns:
            The output fields and `reading`.

        Raises:
            DeclarationError: No LM is set, or its configuration is at fault.
        """
        kwargs = {name: value for name, value in kwargs.items() if value is not None}
        if not isinstance(kwargs.get("lm") or self.lm or dspy.settings.lm, dspy.BaseLM):
            raise DeclarationError(
                f"no LM for the role {self.role!r}: call dspy.configure(lm=dspy.LM(...)), or give the program "
                f"lms={{{self.role!r}: dspy.LM(...)}}"
            )
        if self.local_only and not kwargs.get("lm") and not self.lm:
            refuse_leaving(self.role, dspy.settings.lm)
        lm, config, signature, demos, inputs = self._forward_preprocess(**kwargs)
        specs = restrict(field_specs(signature), choices or {})
        messages = messages_for(signature, demos, inputs, specs, self.last)
        with dspy.context(send_stream=None):  # a JSON object is read whole
            reading = await self._converse(lm, config, messages, specs)
        values = {spec.name: self._native(signature, spec, reading.value(spec.name)) for spec in specs}
        prediction = self._forward_postprocess([values], signature, **inputs)
        object.__setattr__(prediction, "_reading", reading)
        return prediction

    def _native(self, signature: Any, spec: FieldSpec, value: Any) -> Any:
        if spec.kind != "probability" or value is None:
            return list(value) if spec.kind in ("numbers", "texts") and value is not None else value
        from dspy_mama.lm.stated import note_evidence, noul

        note_evidence(self, spec.name, value)
        return noul(signature, self.fields, spec.name, value)

    async def _converse(
        self, lm: Any, config: Mapping[str, Any], messages: list[Message], specs: Sequence[FieldSpec]
    ) -> Reading:
        schema, wants = json_schema(specs), self.logprobs and any(s.kind == "bool" for s in specs)
        reply = await send(lm, config, messages, schema=schema, logprobs=wants)
        if isinstance(reply, Failure):
            why = Unscored(reply.kind, reply.reason, reply.raw)
            return Reading({s.name: why for s in specs}, usage=reply.usage)
        material = messages[-1]["content"]
        reading = self._read(reply, specs, material)
        replies = [reply]
        again = self._reask(lm, config, messages, reply, reading, specs, self.when_cut)
        if again is not None:
            second = await send(lm, again[1], again[0], schema=schema, logprobs=wants)
            if isinstance(second, Failure):
                reading = replace(reading, usage=reading.usage + second.usage)
            else:
                replies.append(second)
                reading = self._merge(reading, self._read(second, specs, material))
        reading = replace(reading, cut=any(one.finish == "length" for one in replies))
        if any(isinstance(outcome, Unscored) for outcome in reading.outcomes.values()):
            for unreadable in replies:
                await asyncio.to_thread(unreadable.forget)
        return reading

    def _read(self, reply: Reply, specs: Sequence[FieldSpec], material: str) -> Reading:
        labels = [spec.name for spec in specs if spec.kind == "bool"]
        probabilities = {name: label_probability(reply.tokens, name) if reply.tokens else None for name in labels}
        return Reading(read_reply(reply, specs, material), probabilities, reply.usage, reply.model)

    @staticmethod
    def _reask(
        lm: Any,
        config: Mapping[str, Any],
        messages: list[Message],
        reply: Reply,
        reading: Reading,
        specs: Sequence[FieldSpec],
        when_cut: WhenCut,
    ) -> tuple[list[Message], dict[str, Any]] | None:
        """Returns prompt and settings of the one re-ask, or None where asking again is no use."""
        problems = _problems(reading.outcomes, specs)
        kinds = {o.kind for o in reading.outcomes.values() if isinstance(o, Unscored)}
        if not problems or "refused" in kinds:
            return None
        if "truncated" in kinds and when_cut == "keep":
            return None
        if "truncated" in kinds and when_cut == "again":
            problems = {
                name: f"{how}; the reply was cut at the token limit: be shorter" for name, how in problems.items()
            }
        elif "truncated" in kinds:
            limit = _token_limit(lm, config)
            return None if limit is None else (messages, {**config, limit[0]: limit[1] * REASK_FACTOR})
        return reask_messages(messages, reply.text, problems), dict(config)

    @staticmethod
    def _merge(first: Reading, second: Reading) -> Reading:
        """Keeps what was read at first; takes the rest, with its probability, from the second reply."""
        outcomes, probabilities = {}, {}
        for name, outcome in first.outcomes.items():
            source = first if isinstance(outcome, Scored) else second
            outcomes[name] = source.outcomes[name]
            probabilities[name] = source.probabilities.get(name)
        usage = first.usage + second.usage + CallUsage(reasks=1)
        return Reading(outcomes, probabilities, usage, second.model)


def reading_of(prediction: Any) -> Reading:
    """Returns the `Reading` behind a prediction of `StructuredPredict`."""
    reading: Reading = prediction._reading
    return reading
