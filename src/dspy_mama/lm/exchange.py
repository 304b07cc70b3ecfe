"""One request to an LM and one reply from it, with the facts that DSPy's adapters leave out.

DSPy 3.4 hands adapters only texts; the finish reason, refusals and usage of the very call come with an explicit
`Request`. Calls that cannot be expressed as a `Request` (older LM subclasses) take the text route and know less.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dspy_mama.core.outcomes import Unscored
from dspy_mama.lm.failures import classify, withdrawn
from dspy_mama.lm.gate import CallFailedError
from dspy_mama.lm.prices import cost_of
from dspy_mama.lm.profile import has_profile, profile_of
from dspy_mama.lm.prompt import Message
from dspy_mama.lm.response_cache import CacheEntry, cache_entry
from dspy_mama.lm.token_probability import TokenScore
from dspy_mama.lm.usage import CallUsage

logger = logging.getLogger(__name__)

_CONNECTION_KEYS = ("api_key", "api_base", "base_url", "headers", "extra_headers", "timeout", "api_version")
_AZURE_KEYS = ("azure_ad_token_provider", "organization", "project", "extra_query", "custom_llm_provider")
_CONTROL_KEYS = ("rollout_id", "n", "num_generations", "prompt_cache", "cache")
_NOT_IN_BODY = frozenset((*_CONNECTION_KEYS, *_AZURE_KEYS, *_CONTROL_KEYS))


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Attributes:
        text: The reply as it came; "" where nothing came.
        finish: `stop`, `length`, `content_filter` and so on; None where the route does not say.
        refusal: Text of a refusal that the provider marked as such.
        model: Model id as the server resolved it.
        tokens: Tokens with log probabilities, where they were asked for and came.
        usage: What the call cost.
        cached: Where DSPy's cache holds it; None = nowhere.
    """

    text: str
    finish: str | None
    refusal: str | None
    model: str
    tokens: tuple[TokenScore, ...]
    usage: CallUsage
    cached: CacheEntry | None = None

    def forget(self) -> None:
        """Drops the reply from DSPy's cache: a later run asks the LM again."""
        if self.cached is not None:
            self.cached.forget()


@dataclass(frozen=True, slots=True)
class Failure(Unscored):
    """A call that gave no reply: why, and the repeats that it took.

    Attributes:
        usage: Only repeats are counted: nothing was answered.
    """

    usage: CallUsage = CallUsage()  # noqa: RUF009 - frozen


def _field(entry: Any, name: str) -> Any:
    return entry.get(name) if isinstance(entry, Mapping) else getattr(entry, name, None)


def _score(entry: Any) -> TokenScore:
    """Returns a token as the library reads it; a missing log probability (JSON has no -inf) counts as -inf."""

    def pair(item: Any) -> tuple[str, float]:
        logprob = _field(item, "logprob")
        return str(_field(item, "token") or ""), -math.inf if logprob is None else float(logprob)

    top = _field(entry, "top") or _field(entry, "top_logprobs") or ()
    return TokenScore(*pair(entry), tuple(map(pair, top)))


def _from_response(response: Any, lm: Any, seconds: float, hit: bool) -> Reply:
    texts, refusals = [], []
    for part in response.message.parts:
        kind = getattr(part, "type", "")
        if kind == "text":
            texts.append(part.text)
        elif kind == "refusal":
            refusals.append(getattr(part, "text", "") or "refused")
        elif kind == "data":
            texts.append(json.dumps(part.value, ensure_ascii=False))
    used = response.usage
    usage = CallUsage(
        calls=1,
        prompt_tokens=0 if hit else used.input_tokens,
        cached_tokens=0 if hit else used.cache_read_tokens,
        completion_tokens=0 if hit else used.output_tokens,
        seconds=seconds,
        cost=0.0 if hit else cost_of(lm, response),
        cache_hits=int(hit),
    )
    tokens = tuple(map(_score, response.logprobs or ()))
    text, refusal = _valid("".join(texts)), _valid("".join(refusals)) or None
    return Reply(text, response.finish_reason, refusal, response.model, tokens, usage)


def _valid(text: str) -> str:
    """Replaces lone surrogates, which no file and no server takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _body(lm: Any, config: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    merged = {**getattr(lm, "kwargs", {}), **config}
    return {
        "model": lm.model,
        "messages": list(messages),
        **{key: value for key, value in merged.items() if key not in _NOT_IN_BODY and value is not None},
    }


def _request(lm: Any, body: Mapping[str, Any]) -> Any | None:
    """Returns the explicit request, or None where this LM or these settings have no such form."""
    from dspy.lm15 import LM15Error, request_from_openai_chat

    if not hasattr(lm, "_engine_spec") or getattr(lm, "model_type", "chat") != "chat":
        return None
    try:
        return request_from_openai_chat(body)
    except (LM15Error, TypeError, ValueError) as error:
        logger.debug("no explicit request for %s: %s", lm.model, error)
        return None


def _awaitable(lm: Any) -> bool:
    """Tells whether an LM can be awaited; one that only knows `forward` or a sync engine runs in a thread."""
    from dspy import BaseLM

    if hasattr(lm, "_engine_spec"):
        return isinstance(lm._engine_spec, str) or getattr(lm, "_async_engine_spec", None) is not None
    return getattr(type(lm), "aforward", None) is not getattr(BaseLM, "aforward", None)


async def _send(lm: Any, config: Mapping[str, Any], messages: Sequence[Message], wanted: Mapping[str, Any]) -> Reply:
    request = _request(lm, _body(lm, {**config, **wanted}, messages))
    settings = {key: config[key] for key in ("rollout_id", "cache") if config.get(key) is not None}
    if settings.get("rollout_id") is None and (rollout := getattr(lm, "kwargs", {}).get("rollout_id")) is not None:
        settings["rollout_id"] = rollout
    asynchronous = _awaitable(lm)
    if request is None:
        settings |= {key: value for key, value in {**config, **wanted}.items() if value is not None}
        arguments: dict[str, Any] = {"messages": list(messages)}
    else:
        arguments = {"prompt": request}
    entry = None
    if settings.get("cache", getattr(lm, "cache", False)):
        entry = await asyncio.to_thread(
            cache_entry, lm, request, arguments.get("messages"), settings, asynchronous=asynchronous
        )
    hit = entry is not None and await asyncio.to_thread(entry.exists)
    began = time.perf_counter()
    if asynchronous:
        answer = await lm.acall(**arguments, **settings)
    else:
        answer = await asyncio.to_thread(lm, **arguments, **settings)
    seconds = time.perf_counter() - began
    reply = _from_outputs(answer, lm, seconds, hit) if request is None else _from_response(answer, lm, seconds, hit)
    return replace(reply, cached=entry)


def _from_outputs(outputs: Any, lm: Any, seconds: float, hit: bool) -> Reply:
    output = outputs[0] if outputs else None
    text = output.get("text") if isinstance(output, Mapping) else output
    content = _field(_field(output, "logprobs"), "content") or () if isinstance(output, Mapping) else ()
    known = 0 if hit else None
    usage = CallUsage(1, known, known, known, seconds, 0.0 if hit else None, cache_hits=int(hit))
    return Reply(_valid(str(text or "")), None, None, lm.model, tuple(map(_score, content)), usage)


async def send(
    lm: Any,
    config: Mapping[str, Any],
    messages: Sequence[Message],
    *,
    schema: Mapping[str, Any] | None,
    logprobs: bool,
) -> Reply | Failure:
    """Sends one prompt through the LM's gate.

    Args:
        lm: A `dspy.LM`.
        config: Settings of this call, over those of the LM.
        messages: The prompt.
        schema: `response_format`, sent where the server enforces schemas.
        logprobs: Ask for token probabilities, where the server returns them.

    Returns:
        The reply, or why there is none.

    Raises:
        DeclarationError: The LM's configuration is at fault.
    """
    profile = profile_of(lm) if has_profile(lm) else await asyncio.to_thread(profile_of, lm)
    repeats_before = 0
    while True:
        wanted: dict[str, Any] = {}
        if schema is not None and profile.json_schema:
            wanted["response_format"] = dict(schema)
        if logprobs and profile.logprobs:
            wanted.update(logprobs=True, top_logprobs=profile.top_logprobs)
        try:
            reply, repeats = await profile.gate.run(partial(_send, lm, config, messages, wanted))
        except CallFailedError as failed:
            repeats_before += failed.repeats
            if withdrawn(failed.error, profile, wanted):
                continue
            why = classify(failed.error)
            return Failure(why.kind, why.reason, why.raw, CallUsage(retries=repeats_before))
        return replace(reply, usage=reply.usage + CallUsage(retries=repeats_before + repeats))
