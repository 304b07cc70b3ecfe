"""What one run of a program costs: its prompts are built, counted, and not sent.

The program runs with LMs that answer at once, with replies as long as each field allows; later prompts then hold
earlier replies at their full length. Tokens are estimated from characters.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, Usage

from dspy_mama.core.cases import Domain, Passage
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.event_loop import run_sync
from dspy_mama.lm.prices import price_of
from dspy_mama.lm.profile import LMProfile, set_profile
from dspy_mama.retrieval.budget import estimate_tokens
from dspy_mama.retrieval.chunking import count_cjk
from dspy_mama.systems.audit.routing import SpecialistTable

_CJK_SHARE: Final = 0.2
"""From this share of Chinese or Japanese characters on, a prompt is answered in them: fewer characters a token."""


@dataclass(frozen=True, slots=True)
class PredictorCost:
    """What one predictor costs per run of the program.

    Attributes:
        name: The predictor.
        role: Role whose LM answers.
        model: Model id of that LM, or None where none is set.
        calls: Calls per run, the most seen.
        system: Tokens of the part that all calls share.
        user: Tokens of a call's material, mean over the pairs that were tried.
        user_most: The same, the most seen.
        reply: Tokens of a reply as long as its fields allow.
        reply_most: Tokens at which the LM cuts a reply; None = no limit is set.
        price: Dollars per prompt token and per new token; None = unknown.
    """

    name: str
    role: str
    model: str | None
    calls: int
    system: int
    user: int
    user_most: int
    reply: int
    reply_most: int | None
    price: tuple[float, float] | None

    def prompt(self, demos: int = 0, *, most: bool = False) -> int:
        """Returns the prompt tokens of a call with so many demonstrations, each a material and a reply."""
        return self.system + (self.user_most if most else self.user) + demos * (self.user_most + self.reply)


class _Ledger:
    """Prompts that were built, by predictor."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.built: dict[str, list[tuple[int, int, int]]] = {}

    def add(self, name: str, tokens: tuple[int, int, int]) -> None:
        with self._lock:
            self.built.setdefault(name, []).append(tokens)


@dataclass
class _DryEngine:
    """An engine that answers at once, from the schema alone, and notes the prompt."""

    name: str
    ledger: _Ledger

    supports_response_schema = True
    supports_function_calling = False
    supports_reasoning = False
    supported_params = ("temperature", "max_tokens", "response_format")

    def complete(self, request: Request) -> Response:
        """Answers a request with the longest reply that its schema allows."""
        system = request.system if isinstance(request.system, str) else _text(request.system or ())
        user = "\n".join(_text(message.parts) for message in request.messages)
        form = request.config.response_format or {}
        schema = form.get("schema") or form.get("json_schema", {}).get("schema", {})
        cjk = count_cjk(user) > _CJK_SHARE * max(len(user), 1)
        text = json.dumps(_filled(schema, "あ" if cjk else "x"), ensure_ascii=False)
        self.ledger.add(self.name, (estimate_tokens(system), estimate_tokens(user), estimate_tokens(text)))
        said = Message(role="assistant", parts=(TextPart(text),))
        return Response(
            id="dry", model="dry", message=said, finish_reason="stop", usage=Usage(input_tokens=0, output_tokens=0)
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> _DryEngine:
        return self


@dataclass
class _AsyncDryEngine:
    engine: _DryEngine

    async def complete(self, request: Request) -> Response:
        """Answers as `_DryEngine`."""
        return self.engine.complete(request)


class FullEvidence:
    """A retriever that finds as much as fits, in no index: what prompts hold at most, where searching would cost."""

    def __init__(self, tokens: int, passages: int) -> None:
        """Makes the passages.

        Args:
            tokens: Tokens of evidence per domain.
            passages: Passages that these are divided into.
        """
        size = 4 * tokens // passages  # characters a token, as `estimate_tokens` counts
        self._found = tuple(Passage(id=f"dry{n}#000000000000", text="x" * size) for n in range(passages))

    async def asearch(
        self, query: str | Sequence[str], domains: Sequence[Domain]
    ) -> Mapping[Domain, tuple[Passage, ...]]:
        """Returns the same passages for every domain."""
        return dict.fromkeys(domains, self._found)

    def describe(self) -> Mapping[str, Any]:
        """Returns its kind."""
        return {"kind": "full"}

    def __deepcopy__(self, memo: dict[int, Any]) -> FullEvidence:
        """Returns itself."""
        return self


def _text(parts: Any) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def _filled(schema: Mapping[str, Any], sign: str) -> Any:
    """Returns the longest value that a JSON schema of `lm.schema` allows."""
    if options := schema.get("enum"):
        return max(options, key=lambda option: len(str(option)))
    kind = schema.get("type")
    if kind == "object":
        return {name: _filled(part, sign) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_filled(schema["items"], sign)] * int(schema.get("maxItems", 1))
    if kind == "boolean":
        return False
    return 1 if kind in ("integer", "number") else sign * int(schema.get("maxLength", 1))


def measure_program(program: Any, inputs: Sequence[Mapping[str, Any]]) -> tuple[PredictorCost, ...]:
    """Measures what a run of a program costs, by running it without any LM. Evidence is searched for as usual.

    Args:
        program: A program; a role without an LM is priced as `dspy.settings.lm`.
        inputs: Inputs of the runs to try, such as five pairs' question and answer.

    Raises:
        DeclarationError: There is no input, or the program cannot run on it.
    """
    if not inputs:
        raise DeclarationError("a plan without pairs costs nothing: there is nothing to estimate")
    ledgers = [_dry_run(program, given) for given in inputs]
    costs = []
    for name, predictor in program.named_predictors():
        runs = [ledger.built.get(name, []) for ledger in ledgers]
        built = [tokens for run in runs for tokens in run]
        if built:
            costs.append(_cost(name, predictor, max(map(len, runs)), built))
    return tuple(costs)


def _cost(name: str, predictor: Any, calls: int, built: Sequence[tuple[int, int, int]]) -> PredictorCost:
    lm = predictor.lm or dspy.settings.lm
    systems, users, replies = zip(*built, strict=True)
    kwargs = getattr(lm, "kwargs", {})
    limit = kwargs.get("max_completion_tokens") or kwargs.get("max_tokens")
    return PredictorCost(
        name,
        getattr(predictor, "role", name),
        None if lm is None else str(lm.model),
        calls,
        max(systems),
        -(-sum(users) // len(users)),
        max(users),
        min(max(replies), limit or max(replies)),
        None if limit is None else int(limit),
        price_of(lm),
    )


def _dry_run(program: Any, given: Mapping[str, Any]) -> _Ledger:
    """Runs a copy of the program on one input and returns the prompts that it built."""
    ledger = _Ledger()
    copy = program.deepcopy()
    for _, module in copy.named_sub_modules():
        if isinstance(getattr(module, "table", None), SpecialistTable):
            module.table = SpecialistTable()  # the user's table must not learn what nobody said
    for name, predictor in copy.named_predictors():
        predictor.lm, predictor.demos = _dry_lm(name, ledger), []
    with dspy.context(disable_history=True, trace=None):
        run_sync(copy.acall(**given))
    return ledger


def _dry_lm(name: str, ledger: _Ledger) -> Any:
    engine = _DryEngine(name, ledger)
    lm = dspy.LM("dry/run", engine=engine, async_engine=_AsyncDryEngine(engine), cache=False, num_retries=0)
    set_profile(lm, LMProfile(json_schema=True, price_input=0.0, price_output=0.0))
    return lm
