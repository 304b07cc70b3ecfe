"""One request to an LM and one reply from it, with the facts that DSPy's adapters leave out.

DSPy 3.4 hands adapters only texts; the finish reason, refusals and usage of the very call come with an explicit
`Request`. Calls that cannot be expressed as a `Request` (older LM subclasses) take the text route and know less.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Unscored
from dspy_mama.lm.profile import LMProfile, profile_of
from dspy_mama.lm.prompt import Message
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
    """

    text: str
    finish: str | None
    refusal: str | None
    model: str
    tokens: tuple[TokenScore, ...]
    usage: CallUsage


def _score(entry: Any) -> TokenScore:
    get = entry.get if isinstance(entry, Mapping) else lambda key, default=None: getattr(entry, key, default)
    top = get("top") or get("top_logprobs") or ()
    pairs = tuple((t["token"], t["logprob"]) if isinstance(t, Mapping) else (t.token, t.logprob) for t in top)
    return TokenScore(get("token"), get("logprob"), pairs)


def _cost(profile: LMProfile, prompt: int | None, completion: int | None, known: float | None) -> float | None:
    if profile.price_input is not None and profile.price_output is not None:
        if prompt is None or completion is None:
            return None
        return (prompt * profile.price_input + completion * profile.price_output) / 1e6
    return known


def _from_response(response: Any, lm: Any, seconds: float, hit: bool) -> Reply:
    texts, refusals = [], []
    for part in response.message.parts:
        kind = getattr(part, "type", "")
        if kind == "text":
            texts.append(part.text)
        elif kind == "refusal":
            refusals.append(getattr(part, "text", "") or "refused")
        elif kind == "data":
            import json

            texts.append(json.dumps(part.value, ensure_ascii=False))
    used = response.usage
    usage = CallUsage(
        calls=1,
        prompt_tokens=0 if hit else used.input_tokens,
        cached_tokens=0 if hit else used.cache_read_tokens,
        completion_tokens=0 if hit else used.output_tokens,
        seconds=seconds,
        cost=0.0 if hit else _cost(profile_of(lm), used.input_tokens, used.output_tokens, _estimate(lm, response)),
        cache_hits=int(hit),
    )
    tokens = tuple(map(_score, response.logprobs or ()))
    return Reply("".join(texts), response.finish_reason, "".join(refusals) or None, response.model, tokens, usage)


def _estimate(lm: Any, response: Any) -> float | None:
    """Returns DSPy's own estimate, which the last history entry of this response carries; None = unknown."""
    history = getattr(lm, "history", None) or ()
    for entry in reversed(history[-64:]):
        if entry.get("response") is response:
            cost = entry.get("cost")
            return float(cost) if cost is not None else None
    return None


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


async def _send(lm: Any, config: Mapping[str, Any], messages: Sequence[Message], wanted: Mapping[str, Any]) -> Reply:
    import dspy
    from dspy.utils.usage_tracker import UsageTracker

    body = _body(lm, {**config, **wanted}, messages)
    request = _request(lm, body)
    rollout = {**getattr(lm, "kwargs", {}), **config}.get("rollout_id")
    began = time.perf_counter()
    if request is None:
        extra = {k: v for k, v in {**config, **wanted, "rollout_id": rollout}.items() if v is not None}
        outputs = await lm.acall(messages=list(messages), **extra)
        return _from_output(outputs[0], lm, time.perf_counter() - began)
    extra = {"rollout_id": rollout} if rollout is not None else {}
    if not lm.cache:
        response = await lm.acall(request, **extra)
        return _from_response(response, lm, time.perf_counter() - began, hit=False)
    # A cached answer is told from a new one only by the usage that DSPy books for it.
    outer, inner = dspy.settings.usage_tracker, UsageTracker()
    with dspy.context(usage_tracker=inner):
        response = await lm.acall(request, **extra)
    booked = inner.get_total_tokens()
    if outer is not None:
        for model, entry in booked.items():
            outer.add_usage(model, entry)
    return _from_response(response, lm, time.perf_counter() - began, hit=not booked)


def _from_output(output: Any, lm: Any, seconds: float) -> Reply:
    text = output.get("text") if isinstance(output, Mapping) else output
    logprobs = output.get("logprobs") if isinstance(output, Mapping) else None
    content = (logprobs.get("content") if isinstance(logprobs, Mapping) else None) or ()
    usage = CallUsage(1, None, None, None, seconds, None)
    return Reply(str(text or ""), None, None, lm.model, tuple(map(_score, content)), usage)


def classify(error: Exception) -> Unscored:
    """Returns the outcome of a call that gave no reply.

    Raises:
        DeclarationError: The fault lies in the configuration (no key, wrong model): every further call would fail.
    """
    from dspy.utils.exceptions import (
        ContextWindowExceededError,
        LMAuthError,
        LMBillingError,
        LMConfigurationError,
        LMInvalidRequestError,
    )

    text = f"{type(error).__name__}: {error}"
    if isinstance(error, (LMAuthError, LMBillingError, LMConfigurationError)):
        raise DeclarationError(f"the LM cannot be used: {text}") from error
    if isinstance(error, ContextWindowExceededError) or "exceed_context_size" in text or "context length" in text:
        return Unscored("invalid_input", f"the pair and its evidence do not fit the model's context window: {text}")
    if isinstance(error, LMInvalidRequestError):
        if any(sign in text for sign in ("content_filter", "content management policy", "ResponsibleAI")):
            return Unscored("refused", f"the provider's filter refused the request: {text}")
        if getattr(error, "status", None) == 404:
            raise DeclarationError(f"the LM cannot be used: {text}") from error
    return Unscored("infra", text)


def _withdrawn(error: Exception, profile: LMProfile, wanted: Mapping[str, Any]) -> bool:
    """Takes back an ability that the server refuses by name; tells whether the call is worth repeating."""
    from dspy.utils.exceptions import LMInvalidRequestError, LMUnsupportedFeatureError

    if not isinstance(error, (LMInvalidRequestError, LMUnsupportedFeatureError)):
        return False
    text = str(error).casefold()
    for ability, signs in (("logprobs", ("logprob",)), ("json_schema", ("response_format", "json_schema", "grammar"))):
        asked = "logprobs" in wanted if ability == "logprobs" else "response_format" in wanted
        if asked and getattr(profile, ability) and any(sign in text for sign in signs):
            profile.withdraw(ability, str(error)[:200])
            return True
    return False


async def send(
    lm: Any,
    config: Mapping[str, Any],
    messages: Sequence[Message],
    *,
    schema: Mapping[str, Any] | None,
    logprobs: bool,
) -> Reply | Unscored:
    """Sends one prompt through the LM's gate.

    Args:
        lm: A `dspy.LM`.
        config: Settings of this call, over those of the LM.
        messages: The prompt.
        schema: `response_format`, sent where the server enforces schemas.
        logprobs: Ask for token probabilities, where the server returns them.

    Returns:
        The reply, or the outcome of a call that gave none.

    Raises:
        DeclarationError: The LM's configuration is at fault.
    """
    from dspy.utils.exceptions import LMError

    profile = profile_of(lm)
    while True:
        wanted: dict[str, Any] = {}
        if schema is not None and profile.json_schema:
            wanted["response_format"] = dict(schema)
        if logprobs and profile.logprobs:
            wanted.update(logprobs=True, top_logprobs=profile.top_logprobs)
        try:
            reply, repeats = await profile.gate.run(lambda sent=wanted: _send(lm, config, messages, sent))  # type: ignore[misc]
        except LMError as error:
            if _withdrawn(error, profile, wanted):
                continue
            return classify(error)
        return _with_retries(reply, repeats)


def _with_retries(reply: Reply, repeats: int) -> Reply:
    if not repeats:
        return reply
    usage = reply.usage + CallUsage(retries=repeats)
    return Reply(reply.text, reply.finish, reply.refusal, reply.model, reply.tokens, usage)
