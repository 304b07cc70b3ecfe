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
