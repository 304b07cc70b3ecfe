"""What this library knows of one LM beyond DSPy: its gate, abilities and prices."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Any

from dspy_mama.lm.gate import Gate
from dspy_mama.lm.privacy import keep_local

logger = logging.getLogger(__name__)
_ATTRIBUTE = "mama_profile"
_lock = threading.Lock()


@dataclass(slots=True)
class LMProfile:
    """Facts of one LM; copies of the LM share them.

    Attributes:
        gate: Rate limit, concurrency and retries.
        json_schema: Whether the server enforces JSON schemas.
        logprobs: Whether the server returns log probabilities.
        top_logprobs: Alternatives asked for per token.
        price_input: Dollars per million prompt tokens, or None.
        price_output: Dollars per million new tokens, or None.
        effective: Settings as they are sent, where they differ from what was asked.
        route: Provider and model as DSPy's price list names them; None = not looked up yet.
    """

    gate: Gate = field(default_factory=Gate)
    json_schema: bool = False
    logprobs: bool = False
    top_logprobs: int = 5
    price_input: float | None = None
    price_output: float | None = None
    effective: dict[str, Any] = field(default_factory=dict)
    route: tuple[str, str] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> LMProfile:
        """Returns itself: copies of an LM share its profile."""
        return self

    def withdraw(self, ability: str, reason: str) -> None:
        """Notes that the server refuses an ability, and says so once."""
        setattr(self, ability, False)
        logger.warning("the server refuses %s (%s); going on without it", ability, reason)


def is_reasoning_model(model: str) -> bool:
    """Tells OpenAI's reasoning families, which refuse a temperature, small token limits and logprobs."""
    from dspy.clients.lm import _is_openai_reasoning_model

    return bool(_is_openai_reasoning_model(model))


def probe(lm: Any) -> LMProfile:
    """Returns a profile from what DSPy knows of an LM's abilities; unknown counts as no."""
    from dspy.utils.exceptions import LMError

    keep_local()
    try:
        params: set[str] = set(getattr(lm, "supported_params", ()) or ())
        schema = bool(getattr(lm, "supports_response_schema", False)) and "response_format" in params
    except (LMError, ImportError) as error:  # the call itself will say what is wrong with this model
        logger.debug("no capabilities known of %s: %s", getattr(lm, "model", lm), error)
        return LMProfile()
    logprobs = "logprobs" in params and not is_reasoning_model(str(getattr(lm, "model", "")))
    return LMProfile(json_schema=schema, logprobs=logprobs)


def has_profile(lm: Any) -> bool:
    """Tells whether an LM's profile is known already; making one may read model catalogues from disk."""
    return isinstance(getattr(lm, _ATTRIBUTE, None), LMProfile)


def profile_of(lm: Any) -> LMProfile:
    """Returns an LM's profile, made on first use and kept on the LM."""
    known = getattr(lm, _ATTRIBUTE, None)
    if isinstance(known, LMProfile):
        return known
    with _lock:
        known = getattr(lm, _ATTRIBUTE, None)
        if not isinstance(known, LMProfile):
            known = probe(lm)
            setattr(lm, _ATTRIBUTE, known)
        return known


def set_profile(lm: Any, profile: LMProfile) -> None:
    """Fixes an LM's profile."""
    setattr(lm, _ATTRIBUTE, profile)
