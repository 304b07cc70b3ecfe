"""What a reply cost: by the prices that were set, else by DSPy's price list, else unknown."""

from __future__ import annotations

import logging
from typing import Any

from dspy_mama.lm.profile import LMProfile, profile_of

logger = logging.getLogger(__name__)


def cost_of(lm: Any, response: Any) -> float | None:
    """Returns the price of a reply in US dollars; None = unknown, which is not 0.

    DSPy estimates the same figure, but hands it on in its history alone, which a long run switches off.

    Args:
        lm: The LM that answered.
        response: Its `dspy.lm15.Response`.
    """
    profile = profile_of(lm)
    used = response.usage
    if profile.price_input is not None and profile.price_output is not None:
        if used.input_tokens is None or used.output_tokens is None:
            return None
        return float(used.input_tokens * profile.price_input + used.output_tokens * profile.price_output) / 1e6
    return _listed(lm, response, profile)


def price_of(lm: Any) -> tuple[float, float] | None:
    """Returns dollars per prompt token and per new token of an LM; None where either is unknown.

    Args:
        lm: A `dspy.LM`, or None.
    """
    if lm is None:
        return None
    name = str(lm.model).split("/", 1)[-1]
    found = [cost_of(lm, _used(name, prompt, reply)) for prompt, reply in ((1000, 0), (0, 1000))]
    known = [cost / 1000 for cost in found if cost is not None]
    return (known[0], known[1]) if len(known) == len(found) else None


def _used(model: str, prompt: int, reply: int) -> Any:
    from dspy.lm15 import Message, Response, TextPart, Usage

    said = Message(role="assistant", parts=(TextPart("x"),))
    used = Usage(input_tokens=prompt, output_tokens=reply)
    return Response(id="dry", model=model, message=said, finish_reason="stop", usage=used)


def _listed(lm: Any, response: Any, profile: LMProfile) -> float | None:
    from dspy.clients.costs import estimate_cost

    route = profile.route
    if route is None:
        route = profile.route = _route(lm)
    provider, model = route
    if not provider:
        return None
    cost, _ = estimate_cost(response, provider=provider, requested_model=model)
    return None if cost is None else float(cost)


def _route(lm: Any) -> tuple[str, str]:
    """Returns provider and model as the price list names them; ("", "") where an engine of its own answers."""
    from dspy.clients.capabilities import resolve
    from dspy.lm15 import LM15Error
    from dspy.utils.exceptions import LMError

    if not isinstance(getattr(lm, "_engine_spec", None), str):
        return "", ""
    try:
        found = resolve(lm)
    except (LM15Error, LMError, ValueError, TypeError) as error:
        logger.debug("no price known of %s: %s", lm.model, error)
        return "", ""
    return ("", "") if found.declared else (found.provider, found.model)
